"""`trainctl import`: writes flags, queues and overrides, and compares what they render with the import."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ops.importing.comparison import flags_of, ids_of, in_their_keys, note_differences, overrides_of, unlike
from ops.importing.config_file import a_part
from ops.importing.flags import take_flags, take_timeouts
from ops.importing.network import take_network
from ops.importing.placeholders import Completion
from ops.importing.queues import take_queues
from ops.importing.renewal import renew, without_nothing
from ops.importing.storage import take_storage
from ops.importing.translation import Config, Translation
from ops.usage import UsageError
from training_cluster.cluster.config import render_cluster_config
from training_cluster.pcluster.check import config_problems
from training_cluster.pcluster.config_diff import Difference, differences
from training_cluster.pcluster.schema import schema_problems
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

FLAGS, QUEUES, OVERRIDES, DIRECTORY = "flags", "queues", "overrides", "directory"
"""Flags of the files, which have their names."""
_SOME_REGION = "us-east-1"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Result of an import."""

    flags: Mapping[str, str]
    files: tuple[Path, ...]
    """Files, the one of flags first."""
    lost: tuple[str, ...]
    """A sentence for each value that is lost, with the reason."""
    wider: tuple[str, ...]
    """A sentence for each right or port that the result opens further."""
    narrower: tuple[str, ...]
    """A sentence for each right or port that the result opens less."""
    replaced: tuple[str, ...]
    """A sentence for each key that has another value, or a successor."""
    moved: tuple[str, ...]
    """A sentence for each key that has the same effect in another place."""
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
        """True when nothing is lost, and nothing is open that was closed."""
        return not (self.lost or self.wider or self.problem)

    @property
    def is_equal(self) -> bool:
        """True when rights, ports, protections, tags and values are those of the imported config."""
        return self.is_complete and not (self.narrower or self.replaced)


def import_config(config: Config, folder: Path) -> Imported:
    """Translate a config, write the files, and render the result.

    Raises:
        UsageError: the folder has files of these names already or cannot be written, the config is a part of
            one, or its scheduler is none that is supported.
    """
    files = {flag: folder / f"{flag}.yaml" for flag in (FLAGS, QUEUES, OVERRIDES, DIRECTORY)}
    if existing := [str(each) for each in files.values() if each.exists()]:
        raise UsageError(f"import: {', '.join(existing)} exists\n  type:   --out another folder")
    to, completion = Translation(), Completion()
    theirs = without_nothing(completion.config(config))
    _check_shape(theirs)
    to.fill += completion.fill
    region = _region(theirs, to)
    renew(theirs, to)
    for problem in schema_problems(copy.deepcopy(theirs)):
        to.note("lost", "", problem)
    take_flags(theirs, to)
    take_network(theirs, to)
    take_storage(theirs, to)
    take_queues(theirs, to)
    to.flags |= flags_of(theirs)
    for flag, content in ((QUEUES, to.queues), (DIRECTORY, to.directory)):
        _write(files[flag], content, to)
    problem, rendered, seen = _render(files[FLAGS], theirs, to)
    if rendered:
        take_timeouts(theirs, rendered, to)
    _write(files[OVERRIDES], overrides_of(unlike(theirs, seen), to) if seen else {}, to)
    problem, rendered, seen = _render(files[FLAGS], theirs, to)
    if seen:
        note_differences(theirs, seen, to)
        problem = problem or "\n".join(config_problems(rendered))
    return Imported(
        flags=to.flags,
        files=tuple(file for file in files.values() if file.exists()),
        lost=to.said("lost"),
        wider=to.said("wider"),
        narrower=to.said("narrower"),
        replaced=to.said("replaced"),
        moved=to.said("moved"),
        fill=tuple(map(to.as_named, to.fill)),
        problem=problem,
        region=region,
        changes=tuple(differences(theirs, rendered)) if seen else (),
    )


def _check_shape(config: Config) -> None:
    """Refuse a config with another value where ParallelCluster has keys, a list or text: it cannot be walked.

    Raises:
        UsageError: a sentence for each such key.
    """
    of_shape = (
        *("expected keys with values", "expected a list", "expected text"),
        *("HeadNode: required", "Scheduling: required"),
    )
    found = [
        each for each in schema_problems(copy.deepcopy(dict(config))) if any(w in each for w in of_shape)
    ]
    if found:
        raise UsageError("import: this is not a ParallelCluster 3 cluster config:\n  " + "\n  ".join(found))
    scheduler = config["Scheduling"].get("Scheduler")
    if scheduler is None and "SlurmQueues" not in config["Scheduling"]:
        raise UsageError(f"import: {a_part(config)}")
    if scheduler != "slurm":
        why = ": jobs, scripts and checks here are Slurm's" if scheduler == "awsbatch" else ""
        raise UsageError(f"import: Scheduling.Scheduler is {scheduler}{why}\n  allowed: slurm")


def _render(file: Path, theirs: Config, to: Translation) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Write the file of flags, and render the config with the ids that they name.

    The config is as it is, and in the imported config's keys. Without one, the first value is the refusal of
    the flags.
    """
    _write_yaml(file, to.flags)
    try:
        settings = read_settings({FLAGS: str(file.resolve())})
        ids = ids_of(settings, str(theirs.get("Region", _SOME_REGION)))
        rendered = render_cluster_config(settings=settings, ids=ids)
    except ConfigurationError as error:
        return str(error), {}, {}
    return "", rendered, in_their_keys(rendered, settings)


def _region(config: Config, to: Translation) -> str:
    """Return the region of a config, which no flag has, and list it to be set."""
    region = str(config.get("Region", ""))
    if region:
        to.fill.append(f"Region: no flag has it: export AWS_REGION={region}, for trainctl and cdk")
    return "" if "$" in region else region


def _write(file: Path, content: Mapping[str, Any], to: Translation) -> None:
    """Write a file that a flag names, if it has content."""
    if content:
        _write_yaml(file, content)
        to.flags[file.stem] = file.name


def _write_yaml(file: Path, content: Mapping[str, Any]) -> None:
    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"import: {file} cannot be written: {error.strerror}\n"
            "  type:   --out another folder, one of your own"
        ) from None
