"""Creates the folder of a new workload in assets/training that trains without any change."""

import re
import shutil
import tempfile
from pathlib import Path

from ops.usage import UsageError
from training_cluster.flags.compute import NO_WORKLOADS
from training_cluster.paths import TRAINING
from training_cluster.problems import ConfigurationError, did_you_mean

TEMPLATE = Path(__file__).with_name("workload_template")
"""A complete workload whose name is a placeholder for the name of the new one."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RESERVED = {"trainkit": "the package that all trainers use", NO_WORKLOADS: "-c workloads=none"}
_BESIDE = ("job.slurm", "prepare.sh", "train.sh", "trainkit")
_NOT_SOURCE = shutil.ignore_patterns("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")


def create_workload(name: str, *, into: Path = TRAINING, source: str | None = None) -> Path:
    """Create the folder, completely or not at all.

    Raises:
        UsageError: no workload can have this name, or the source does not exist.
        ConfigurationError: the folder exists already, or FOLDER does not hold workloads.
    """
    _check_name(name)
    original = _source(source, into)
    missing = [each for each in _BESIDE if not (into / each).exists()]
    if missing:
        raise ConfigurationError(
            f"{into} has no {', '.join(missing)}, which every workload needs beside its folder.\n"
            f"  type:   trainctl new-workload {name}, which makes it in {TRAINING}"
        )
    target = into / name
    if target.exists():
        raise ConfigurationError(
            f"{target} already exists and is not changed.\n  type:   trainctl new-workload with another name"
        )
    with tempfile.TemporaryDirectory(dir=into, prefix=".new-") as folder:
        copy = Path(folder) / name
        shutil.copytree(original, copy, ignore=_NOT_SOURCE)
        for file in filter(Path.is_file, copy.rglob("*")):
            _rename_in(file, original.name, name)
        copy.rename(target)
    return target


def workloads(training: Path) -> list[str]:
    """Return the names of the workloads in a folder, sorted."""
    return sorted(file.parent.name for file in training.glob("*/train.sh"))


def _check_name(name: str) -> None:
    if name in _RESERVED:
        raise UsageError(f'"{name}" cannot name a workload: it means {_RESERVED[name]}.')
    if not _NAME.fullmatch(name):
        raise UsageError(
            f'"{name}" cannot name a workload.\n'
            "  allowed: a lower-case letter, then lower-case letters, digits, - and _; 40 characters at most"
        )


def _source(source: str | None, into: Path) -> Path:
    if source is None:
        return TEMPLATE
    names = workloads(into)
    if source not in names:
        raise UsageError(
            f'There is no workload "{source}" in {into}.{did_you_mean(source, names)}\n'
            f"  allowed: {', '.join(names)}"
        )
    return into / source


def _rename_in(file: Path, old: str, new: str) -> None:
    """Write the new name into a file's commands and paths.

    The template's name is a placeholder everywhere. Another workload's name is replaced in commands and paths
    only, because it may be the name of a model, too.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    own = re.escape(old)
    before = (r"job\.slurm ", "WORKLOAD=", r"\bruns/", r"\bdatasets/", r"\bcheckpoints/", r"\bvenvs/")
    pattern = own if old == TEMPLATE.name else "|".join(rf"(?<={each}){own}\b" for each in before)
    file.write_text(re.sub(pattern, new, text), encoding="utf-8")
