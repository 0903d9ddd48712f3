"""Files that the start of one rank asks the shared file system for, counted by strace."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.environments import VENVS
from bench.measuring.timing import run
from bench.subjects.workloads import Workload
from training_cluster.paths import ROOT, TRAINING

WORKLOAD = "gpt2"
_SETTINGS = {
    "device": "cpu",
    "mixed_precision": "no",
    "omp_num_threads": 1,
    "init_from": "scratch",
    "corpus": "machine",
    "vocab_size": 1024,
    "gpt2_layers": 1,
    "gpt2_heads": 2,
    "gpt2_width": 64,
    "gpt2_context": 64,
    "max_steps": 2,
    "batch_size": 2,
    "eval_batches": 0,
    "checkpoint_every": 1000,
}
_OPENS = frozenset({"open", "openat", "openat2", "creat"})
# One call of strace's output: its name, and the first path among its arguments.
_CALL = re.compile(r'^(?:\d+ +)?(\w+)\((?:[^"]*?)"((?:[^"\\]|\\.)*)"')
# Part of the name of a checkpoint that is being written.
_CHECKPOINT = "/.step-"
_UNPACK = """\
set -euo pipefail
source "$1/environment.sh"
venv="$(environment_of "$1/$2")"
archive_environment "$venv"
local_environment "$venv"
"""


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Calls with a path on the shared file system."""

    opens: int
    others: int
    """Calls that ask for the state of a path, its rights or the target of a link, or change its name."""
    paths: int
    """Different paths of all these calls."""


@dataclass(frozen=True, kw_only=True)
class Starts:
    """The start of one rank with its torchrun, until it writes its first checkpoint."""

    shared: Calls
    """With the environment on shared storage."""
    local: Calls
    """With the environment on the node's disk."""
    unpacked_s: float
    """Seconds to pack the environment and to unpack it, once per job and once per node."""
    archive_bytes: int


def count(lines: Iterable[str], folders: Sequence[Path]) -> Calls:
    """Count the calls before the first checkpoint whose first path is in one of the folders.

    Args:
        lines: strace's output, of which each line has one call.
    """
    prefixes = tuple(f"{folder}/" for folder in folders)
    opens = others = 0
    paths = set()
    for line in itertools.takewhile(lambda line: _CHECKPOINT not in line, lines):
        if (found := _CALL.match(line)) and f"{found[2]}/".startswith(prefixes):
            is_open = found[1] in _OPENS
            opens += is_open
            others += not is_open
            paths.add(found[2])
    return Calls(opens=opens, others=others, paths=len(paths))


def measure_starts(folder: Path) -> Starts | None:
    """Start gpt2 with its environment on either kind of storage; return None without strace.

    Raises:
        BaselineError: a start failed.
    """
    if not shutil.which("strace"):
        return None
    shared, scratch = folder / "shared", folder / "scratch"
    training = shared / "training"
    shutil.copytree(TRAINING, training)
    scratch.mkdir()
    workload = Workload(name=WORKLOAD, shared=shared)
    workload.prepare("prepared", _SETTINGS)
    on_shared = _start(workload, training, "shared", {"LOCAL_ENVIRONMENT": "no"}, folder)
    wanted = {"LOCAL_ENVIRONMENT": "yes", "SCRATCH": str(scratch), "SLURM_JOB_ID": "1"}
    earlier = set(VENVS.glob(f"{WORKLOAD}.*.tar"))
    try:
        began = time.perf_counter()
        run(
            ["bash", "-c", _UNPACK, "bash", training, WORKLOAD],
            cwd=ROOT,
            environment={**workload.environment("local", _SETTINGS), **wanted},
        )
        unpacked_s = time.perf_counter() - began
        (archive,) = VENVS.glob(f"{WORKLOAD}.*.tar")
        archive_bytes = archive.stat().st_size
        on_local = _start(workload, training, "local", wanted, folder)
    finally:
        for archive in set(VENVS.glob(f"{WORKLOAD}.*.tar")) - earlier:
            archive.unlink()
    return Starts(shared=on_shared, local=on_local, unpacked_s=unpacked_s, archive_bytes=archive_bytes)


def _start(workload: Workload, training: Path, name: str, wanted: dict[str, str], folder: Path) -> Calls:
    environment = {**workload.environment(name, _SETTINGS), **wanted}
    shutil.copyfile(workload.run_dir("prepared") / "data.json", workload.run_dir(name) / "data.json")
    trace = folder / f"{name}.strace"
    command: list[str | Path] = ["strace", "--follow-forks", "--seccomp-bpf", "-qq", "-s", "4096"]
    command += ["--trace=%file", "--output", trace, "bash", training / WORKLOAD / "train.sh"]
    run(command, cwd=workload.shared, environment=environment)
    with trace.open(encoding="utf-8", errors="replace") as lines:
        return count(lines, (workload.shared, VENVS, Path(os.path.realpath(VENVS))))
