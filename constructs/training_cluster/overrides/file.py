"""Reader of the file of overrides: keys of ParallelCluster's cluster config, as its users write them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from training_cluster.overrides.reserved import reserved_keys
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError

LOCAL = "file://"
"""Prefix of a script in the folder of the file of overrides; it is uploaded with the cluster's scripts."""


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """Keys of a cluster config that replace the rendered ones or are added to them."""

    file: Path
    content: dict[str, Any]

    def scripts(self) -> dict[str, Path]:
        """Return the path of each local script by its URL, `file://hooks/mount.sh`."""
        return {url: self.file.parent / url.removeprefix(LOCAL) for url in sorted(set(_urls(self.content)))}

    def uploaded(self, folder_url: str) -> dict[str, Any]:
        """Return the content with the URL that each local script has in the bucket."""
        urls = {url: f"{folder_url}/{upload_key(path)}" for url, path in self.scripts().items()}
        uploaded: dict[str, Any] = _replaced(self.content, urls)
        return uploaded


def upload_key(script: Path) -> str:
    """Return a script's key below the cluster's scripts; by its content, so that a change is an update."""
    return f"own/{hashlib.sha256(script.read_bytes()).hexdigest()[:16]}/{script.name}"


def read_overrides(name: str) -> Overrides:
    """Read a file of overrides.

    Args:
        name: path of the file, absolute or in the folder of cdk.json.

    Raises:
        ConfigurationError: no such file, no YAML, a key twice, a key that a flag sets, or no such script.
    """
    file = ROOT / name
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise _mistake(name, [f"{file}: {reason}"]) from None
    overrides = Overrides(file=file, content=_parse(name, text))
    if found := [*reserved_keys(overrides.content), *_new_storage(overrides.content), *_missing(overrides)]:
        raise _mistake(name, found)
    return overrides


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise _mistake(name, ["the file is empty"])
        if twice := list(_duplicates(node)):
            raise _mistake(name, twice)
        content = yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise _mistake(name, [f"{line}{error.problem or error.context}"]) from None
    except yaml.YAMLError as error:
        raise _mistake(name, [" ".join(str(error).split())]) from None
    if not isinstance(content, dict):
        raise _mistake(name, ["the file has no keys of a cluster config, such as HeadNode or Scheduling"])
    return content


class _Loader(yaml.SafeLoader):
    """YAML's types without dates, which no key of a cluster config takes."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _duplicates(node: yaml.Node, within: tuple[yaml.Node, ...] = ()) -> Iterator[str]:
    """Yield each key and each Name that is given twice: YAML's reader takes the last key in silence."""
    line = node.start_mark.line + 1
    if any(node is each for each in within):
        yield f"line {line}: a value that contains itself"
        return
    inner = (*within, node)
    if isinstance(node, yaml.SequenceNode):
        yield from _twice((f"Name {key.value}", key) for key in _names(node))
        for item in node.value:
            yield from _duplicates(item, inner)
    elif isinstance(node, yaml.MappingNode):
        yield from _twice((f"key {key.value}", key) for key, _ in node.value)
        for _, value in node.value:
            yield from _duplicates(value, inner)


def _twice(given: Iterable[tuple[str, yaml.Node]]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for words, node in given:
        line = node.start_mark.line + 1
        if words in seen:
            yield f"line {line}: the {words} is on line {seen[words]} already"
        seen[words] = line


def _names(items: yaml.SequenceNode) -> Iterator[yaml.Node]:
    for item in items.value:
        if isinstance(item, yaml.MappingNode):
            yield from (value for key, value in item.value if key.value == "Name")


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "Script" and isinstance(inner, str) and inner.startswith(LOCAL):
                yield inner
            else:
                yield from _urls(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _urls(inner)


def _replaced(value: Any, urls: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: urls[inner] if key == "Script" and inner in urls else _replaced(inner, urls)
            for key, inner in value.items()
        }
    return [_replaced(each, urls) for each in value] if isinstance(value, list) else value


def _missing(overrides: Overrides) -> Iterator[str]:
    for url, path in overrides.scripts().items():
        if not path.is_file():
            yield f"{url}: there is no file {path}"


def _new_storage(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each storage that ParallelCluster would make, without rights of the provider."""
    storage = content.get("SharedStorage")
    for item in storage if isinstance(storage, list) else []:
        keys = item if isinstance(item, dict) else {}
        settings = [value for value in keys.values() if isinstance(value, dict)]
        if not any(id_ in each for each in settings for id_ in ("FileSystemId", "VolumeId")):
            yield (
                f"SharedStorage[{keys.get('Name', '')}]: ParallelCluster would make it, and delete it with "
                "the cluster: make it yourself, and give its FileSystemId or VolumeId"
            )


def _mistake(name: str, found: list[str]) -> ConfigurationError:
    lines = [f"overrides={name} cannot be used, nothing was done:"]
    lines += [f"  {line}" for line in found]
    lines.append("    allowed: a YAML file with keys of ParallelCluster's cluster config (docs/overrides.md)")
    return ConfigurationError("\n".join(lines))
