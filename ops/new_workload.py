"""`trainctl new-workload`: a folder in assets/training that trains as it is."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from ops.usage import UsageError
from training_cluster.flags.cluster import NO_WORKLOADS
from training_cluster.paths import TRAINING
from training_cluster.problems import ConfigurationError, did_you_mean

TEMPLATE = Path(__file__).with_name("workload_template")
"""A workload like others, but for its name, which stands for the new one's wherever it is written."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RESERVED = {"trainkit": "the package that all trainers use", NO_WORKLOADS: "-c workloads=none"}
_BESIDE = ("job.slurm", "launch.sh", "trainkit")
_NOT_SOURCE = shutil.ignore_patterns("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")


def create_workload(name: str, *, into: Path = TRAINING, source: str | None = None) -> Path:
    """Make the folder, whole or not at all; `source` names a workload to copy, by default the template.

    Raises:
        UsageError: no workload can have this name, or there is no such source.
        ConfigurationError: the folder is there, or FOLDER is not one of workloads.
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
            f"{target} is there, and stays as it is.\n  type:   trainctl new-workload with another name"
        )
    with tempfile.TemporaryDirectory(dir=into, prefix=".new-") as folder:
        copy = Path(folder) / name
        shutil.copytree(original, copy, ignore=_NOT_SOURCE)
        for file in filter(Path.is_file, copy.rglob("*")):
            _rename_in(file, original.name, name)
        copy.rename(target)
    return target


def workloads(training: Path) -> list[str]:
    """Names of the workloads there, sorted."""
    return sorted(file.parent.name for file in training.glob("*/train.sh"))


def _check_name(name: str) -> None:
    if name in _RESERVED:
        raise UsageError(f'"{name}" can be no workload: it means {_RESERVED[name]}.')
    if not _NAME.fullmatch(name):
        raise UsageError(
            f'"{name}" can be no workload.\n'
            "  allowed: a small letter, then small letters, digits, - and _; 40 characters at most"
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
    """Give the new name where a file tells how to start it, or where its things are.

    The template's name is written nowhere else. Of another workload only that is changed: its name may be a
    model's, too.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    own = re.escape(old)
    before = (r"job\.slurm ", "WORKLOAD=", r"\bruns/", r"\bdatasets/", r"\bcheckpoints/", r"\bvenvs/")
    pattern = own if old == TEMPLATE.name else "|".join(rf"(?<={each}){own}\b" for each in before)
    file.write_text(re.sub(pattern, new, text), encoding="utf-8")
