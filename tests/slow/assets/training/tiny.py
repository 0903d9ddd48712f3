"""Slurm with the tests' own workload, whose trainer takes seconds: what tests of job.slurm's parts share."""

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.slow.assets.training.training import Training, marked, training_on_slurm, wait_until

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


def node_of(pid: int) -> str:
    """Return the node of a rank."""
    (rank,) = (process for process in marked("tiny") if process.pid == pid)
    return rank.environ()["SLURMD_NODENAME"]


def of_node(name: str) -> list[psutil.Process]:
    """Return a node's slurmd and slurmstepds, which would report the end of tasks, and then its tasks."""
    tasks, stepds = [], {}
    for process in marked("tiny"):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if process.environ().get("SLURMD_NODENAME") == name:
                tasks.append(process)
                above = process.parent()
                if above and above.name().startswith("slurmstepd"):
                    stepds[above.pid] = above
    return [*daemons("slurmd", name), *stepds.values(), *tasks]


def switch_off(node: str) -> None:
    """Kill all of a node, without a reaction: all is stopped first, and children die before parents.

    Otherwise the kernel continues srun with a SIGHUP, at which it ends its step on the other nodes: its
    process group is stopped and becomes orphaned (setpgid(2)).
    """
    found = of_node(node)
    for by in (signal.SIGSTOP, signal.SIGKILL):
        for process in sorted(found, key=_age, reverse=True):
            with contextlib.suppress(psutil.Error):
                process.send_signal(by)


def _age(process: psutil.Process) -> tuple[float, int]:
    return process.create_time(), process.pid


def scontrol(training: Training, *words: str) -> None:
    subprocess.run(["scontrol", *words], env=training.slurm.client_env(), check=True)


def daemon(name: str, node: str = "") -> psutil.Process:
    """Return the process of a daemon, of a node for slurmd."""
    (found,) = daemons(name, node)
    return found


def daemons(name: str, node: str = "") -> list[psutil.Process]:
    """Return the processes of a daemon, of a node for slurmd; none of a node that does not run."""
    found = []
    for process in marked("tiny"):
        with contextlib.suppress(psutil.Error):
            if process.name() == name and (not node or node in process.cmdline()):
                found.append(process)
    return found


def begin_again(
    process: psutil.Process, argv_of: Callable[[list[str]], list[str]], by: signal.Signals = signal.SIGKILL
) -> None:
    """End a daemon, and start it again as the service manager of a node does."""
    argv, env, folder = process.cmdline(), process.environ(), process.cwd()
    process.send_signal(by)
    process.wait(20)
    quiet = subprocess.DEVNULL
    subprocess.Popen(argv_of(argv), env=env, cwd=folder, start_new_session=True, stdout=quiet, stderr=quiet)
