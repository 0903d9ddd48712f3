"""Slurm with the tests' own workload, whose trainer takes seconds: what tests of job.slurm's parts share."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.slow.assets.training.training import Training, training_on_slurm, wait_until

TINY = Path(__file__).parent / "tiny_workload"
# As every workload's prepare.sh begins.
WITH_REQUIREMENTS = """\
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../environment.sh"
venv="$(environment_of "$here")"
make_environment "$here" "$venv"
"""


@contextmanager
def tiny_on_slurm(folder: Path, **env: str) -> Iterator[Training]:
    """A local Slurm with the tiny workload, whose nodes run several jobs side by side."""
    env = {"TRAINING_VENVS": str(folder / "venvs")} | env
    with training_on_slurm(folder, workload="tiny", env=env, nodes=8) as training:
        shutil.copytree(TINY, training.shared / "training" / "tiny")
        yield training


def steps(training: Training, run: str) -> list[int]:
    return [row["step"] for row in training.metrics(run)]


def starts(training: Training, run: str) -> list[tuple[str, str]]:
    """Number and step of each start."""
    lines = (training.run_dir(run) / "starts").read_text().splitlines()
    return [(line.split()[0], line.split()[1]) for line in lines]


def restarts(training: Training, run: str) -> list[str]:
    """Slurm's restart count at each start."""
    return [line.split()[5] for line in (training.run_dir(run) / "starts").read_text().splitlines()]


def losses(training: Training, run: str) -> list[float]:
    return [row["loss"] for row in training.metrics(run)]


def let_go(training: Training, run: str) -> None:
    """Let the ranks of a run go on that wait before the step HOLD_AT, now and in later starts."""
    (training.run_dir(run) / "go").touch()


def wait_for_words(training: Training, job_id: int, words: str) -> None:
    with training.ended_if_late(job_id):
        wait_until(
            lambda: words in training.output(job_id), timeout_s=180, what=f"the job does not say: {words}"
        )
