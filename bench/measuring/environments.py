"""The interpreters of the measured programs, and the baselines in folders that the user names."""

import os
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.programs import BaselineError, Command, run
from training_cluster.paths import ROOT, TRAINING

VENVS = Path(os.environ.get("TRAINING_VENVS") or ROOT / ".rehearsal" / "venvs")
"""Environments of the workloads, shared with rehearsals."""
ABSENT = "baseline absent"
PINNED = {
    # The last commit of the master branch.
    "nanoGPT": "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
}
_INSTALL_TIMEOUT_S = 1200
_MAKE = """\
set -euo pipefail
source "$1/environment.sh"
venv="$(environment_of "$1/$2")"
make_environment "$1/$2" "$venv"
printf '%s\\n' "$venv/bin/python"
"""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Another program's folder in BASELINES."""

    folder: Path
    note: str
    """Sentence that names the measured commit."""


def workload_python(workload: str) -> Path:
    """Return the interpreter of a workload's own environment; make the environment first if it is missing."""
    environment = {**os.environ, "TRAINING_VENVS": str(VENVS), "TRAINING_REHEARSAL": "1"}
    command: Command = ["bash", "-c", _MAKE, "bash", TRAINING, workload]
    output = run(command, cwd=ROOT, environment=environment, timeout_s=_INSTALL_TIMEOUT_S)
    return Path(output.splitlines()[-1])


def find_baseline(name: str) -> Baseline | None:
    """Find a baseline's folder in BASELINES; None if there is none.

    Raises:
        BaselineError: BASELINES is not a folder.
    """
    if not (named := os.environ.get("BASELINES")):
        return None
    if not Path(named).expanduser().is_dir():
        raise BaselineError(
            f"BASELINES={named}: no such folder.\n  type: make bench BASELINES=dir, where dir has checkouts "
            f"named {', '.join(PINNED)}"
        )
    folder = Path(named).expanduser().absolute() / name
    return Baseline(folder=folder, note=_commit_note(name, folder)) if folder.is_dir() else None


def _commit_note(name: str, folder: Path) -> str:
    """Compare the checkout with the commit for which the figures are meant."""
    if not (folder / ".git").exists():
        return f"{name}: unknown commit, since its folder is not a git checkout."
    head = _git(folder, "rev-parse", "HEAD")
    changed = ", with local changes" if _git(folder, "status", "--porcelain") else ""
    pinned = PINNED[name]
    if head == pinned:
        return f"{name}: commit {head[:12]}, as pinned{changed}."
    return f"{name}: commit {head[:12]}{changed}, which differs from the pinned {pinned[:12]}."


def _git(folder: Path, *arguments: str) -> str:
    return run(["git", "-C", folder, *arguments], cwd=folder, environment=os.environ)
