"""`trainctl import`: writes flags, queues and overrides, and compares what they render with the import."""

import copy
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ops.importing.flags import take_flags
from ops.importing.network import take_network
from ops.importing.overrides import lose_what_differs, take_overrides
from ops.importing.placeholders import Completion
from ops.importing.queues import take_queues
from ops.importing.renewal import renewed, without_nothing
from ops.importing.storage import OUR_EFS, OUR_STORAGE, is_ours, take_storage
from ops.importing.translation import Config, Translation
from ops.usage import UsageError
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy, config_problems
from training_cluster.pcluster.config_diff import Difference, differences
from training_cluster.pcluster.schema import schema_problems, with_types
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

FLAGS_FILE = "flags.json"
QUEUES_FILE, OVERRIDES_FILE, DIRECTORY_FILE = "queues.yaml", "overrides.yaml", "directory.yaml"
LOGIN_POOL = "login"
"""Name of the pool of -c login_nodes."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Result of an import."""

    flags: Mapping[str, str]
    files: tuple[Path, ...]
    lost: tuple[str, ...]
    """A sentence for each key that is lost, with the reason."""
    replaced: tuple[str, ...]
    """A sentence for each key that has a successor of the same effect, or ParallelCluster's own."""
    fill: tuple[str, ...]
    """A sentence for each value that the user has to complete."""
    problem: str
    """Refusal of the result by our rules or ParallelCluster's schema; "" if it can be deployed."""
    region: str
    """Region of the imported config; "" if it has none."""
    changes: tuple[Difference, ...]
    """Keys that the rendered config has otherwise than the imported one, with both values."""

    @property
    def is_complete(self) -> bool:
        """True when nothing that changes the cluster is lost."""
        return not self.lost and not self.problem


def import_config(config: Config, folder: Path) -> Imported:
    """Translate a config, write the files, and render the result.

    Raises:
        UsageError: the folder has files of these names already or cannot be written, or the scheduler is
            none that is supported.
    """
    names = (FLAGS_FILE, QUEUES_FILE, OVERRIDES_FILE, DIRECTORY_FILE)
    files = {name: folder / name for name in names}
    if existing := [str(each) for each in files.values() if each.exists()]:
        raise UsageError(f"import: {', '.join(existing)} exists\n  type:   --out another folder")
    to, completion = Translation(), Completion()
    given = with_types(without_nothing(completion.config(config)))
    _check_shape(given)
    scheduler = given["Scheduling"].get("Scheduler")
    if scheduler != "slurm":
        why = ": jobs, scripts and checks here are Slurm's" if scheduler == "awsbatch" else ""
        raise UsageError(f"import: Scheduling.Scheduler is {scheduler}{why}\n  allowed: slurm")
    theirs = renewed(given, to.replaced)
    to.fill += completion.fill
    _rename(theirs, to)
    for problem in schema_problems(copy.deepcopy(theirs)):
        to.lose("", "", problem)
    take_flags(theirs, to)
    take_network(theirs, to)
    take_storage(theirs, to)
    take_queues(theirs, to)
    _make(folder)
    written = [files[FLAGS_FILE]]
    for flag, content in (("queues", to.queues), ("directory", to.directory)):
        if content:
            written.append(_write_yaml(files[f"{flag}.yaml"], content))
            to.flags[flag] = _named(files[f"{flag}.yaml"])
    problem, rendered = _render(to.flags)
    if rendered is not None:
        take_overrides(theirs, rendered, to)
        if to.overrides:
            written.append(_write_yaml(files[OVERRIDES_FILE], to.overrides))
            to.flags["overrides"] = _named(files[OVERRIDES_FILE])
        problem, rendered = _render(to.flags)
    if rendered is not None:
        lose_what_differs(theirs, rendered, to)
        problem = problem or "\n".join(config_problems(rendered))
    _write(files[FLAGS_FILE], json.dumps({"context": to.flags}, indent=2) + "\n")
    region = _region(config, to)
    return Imported(
        flags=to.flags,
        files=tuple(written),
        lost=tuple(dict.fromkeys(each.text() for each in to.lost)),
        replaced=tuple(dict.fromkeys(to.replaced)),
        fill=tuple(to.fill),
        problem=problem,
        region=region,
        changes=tuple(differences(theirs, rendered)) if rendered is not None else (),
    )


def _check_shape(config: Config) -> None:
    """Refuse a config with a number or text where ParallelCluster has keys or a list: it cannot be walked.

    Raises:
        UsageError: a sentence for each such key.
    """
    of_shape = ("expected keys with values", "expected a list", "HeadNode: required", "Scheduling: required")
    found = [
        each for each in schema_problems(copy.deepcopy(dict(config))) if any(w in each for w in of_shape)
    ]
    if found:
        raise UsageError("import: this is not a ParallelCluster 3 cluster config:\n  " + "\n  ".join(found))


def _rename(theirs: dict[str, Any], to: Translation) -> None:
    """Give names that ours have to the first pool of login nodes, and other names to storage with ours."""
    for pool in theirs.get("LoginNodes", {}).get("Pools", [])[:1]:
        if pool.get("Name") != LOGIN_POOL:
            to.replaced.append(f"LoginNodes.Pools[{pool.get('Name')}]: the first pool is named {LOGIN_POOL}")
        pool["Name"] = LOGIN_POOL
    storage = theirs.get("SharedStorage", [])
    ours: Any = next((each for each in storage if each.get("StorageType") == "Efs" and is_ours(each)), None)
    for item in storage:
        name = item.get("Name")
        if item is ours:
            item["Name"] = OUR_EFS
        elif name in OUR_STORAGE and not is_ours(item):
            to.replaced.append(f"SharedStorage[{name}]: named own-{name}, since ours has the name")
            item["Name"] = f"own-{name}"


def _render(flags: Mapping[str, str]) -> tuple[str, dict[str, Any] | None]:
    """Render the config; return a refusal of the flags, and no config."""
    try:
        return "", config_before_deploy(read_settings(flags))
    except ConfigurationError as error:
        return str(error), None


def _region(config: Config, to: Translation) -> str:
    """Return the region of a config, which no flag has, and list it to be set."""
    region = config.get("Region")
    if not isinstance(region, str) or "$" in region:
        return ""
    to.fill.append(f"Region: no flag has it: export AWS_REGION={region}, for trainctl and cdk")
    return region


def _named(file: Path) -> str:
    """Return the path as the flags take it: relative to the folder of cdk.json, also for a colleague."""
    return os.path.relpath(file.resolve(), ROOT)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from None


def _write_yaml(file: Path, content: Mapping[str, Any]) -> Path:
    _write(file, yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))
    return file


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_written(file, error) from None


def _not_written(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"import: {path} cannot be written: {error.strerror}\n  type:   --out another folder, one of your own"
    )
