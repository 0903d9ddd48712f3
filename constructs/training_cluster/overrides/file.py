"""Reader of the file of overrides: keys of ParallelCluster's cluster config, as its users write them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training_cluster.flags.account import tag_problem
from training_cluster.overrides.merge import texts
from training_cluster.overrides.nodes import excluded_rights, unusable_policies
from training_cluster.overrides.reserved import reserved_keys
from training_cluster.paths import ROOT
from training_cluster.user_yaml import read_file_of, unusable

LOCAL = "file://"
"""Prefix of a script in the folder of the file of overrides; it is uploaded with the cluster's scripts."""
_PAGE = "  allowed: a YAML file with keys of ParallelCluster's cluster config (docs/overrides.md)"


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """Keys of a cluster config that replace the rendered ones or are added to them."""

    file: Path
    content: dict[str, Any]

    def scripts(self) -> dict[str, Path]:
        """Return the path of each local script by its URL, `file://hooks/mount.sh`."""
        found = {text for path, text in texts(self.content) if path.endswith(".Script")}
        local = sorted(url for url in found if url.startswith(LOCAL))
        return {url: self.file.parent / url.removeprefix(LOCAL) for url in local}

    def uploaded(self, folder_url: str) -> dict[str, Any]:
        """Return the content with the URL that each local script has in the bucket."""
        urls = {url: f"{folder_url}/{upload_key(path)}" for url, path in self.scripts().items()}

        def with_url(keys: dict[str, Any]) -> dict[str, Any]:
            script = keys.get("Script")
            return keys | ({"Script": urls[script]} if isinstance(script, str) and script in urls else {})

        uploaded: dict[str, Any] = json.loads(json.dumps(self.content, default=str), object_hook=with_url)
        return uploaded


def upload_key(script: Path) -> str:
    """Return a script's key below the cluster's scripts; by its content, so that a change is an update."""
    return f"own/{hashlib.sha256(script.read_bytes()).hexdigest()[:16]}/{script.name}"


def read_overrides(name: str) -> Overrides:
    """Read a file of overrides.

    Args:
        name: path of the file, absolute or in the folder of cdk.json.

    Raises:
        ConfigurationError: no such file, no YAML, a key twice, a key that a flag sets, a tag
            that AWS refuses, or no such script.
    """
    otherwise = "the file has no keys of a cluster config, such as HeadNode or Scheduling"
    content = read_file_of("overrides", name, otherwise=otherwise, page=_PAGE)
    overrides = Overrides(file=ROOT / name, content=content)
    rights = [*excluded_rights(content), *unusable_policies(content)]
    if found := [*reserved_keys(content), *rights, *_unusable_tags(content), *_missing(overrides)]:
        raise unusable(f"overrides={name}", found, page=_PAGE)
    return overrides


def _unusable_tags(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each tag that CloudFormation could not give to all resources of the cluster."""
    tags = content.get("Tags")
    for each in tags if isinstance(tags, list) else []:
        if isinstance(each, Mapping) and (
            problem := tag_problem(str(each.get("Key")), str(each.get("Value")))
        ):
            yield f"Tags: {problem}"


def _missing(overrides: Overrides) -> Iterator[str]:
    for url, path in overrides.scripts().items():
        if not path.is_file():
            yield f"{url}: there is no file {path}"
