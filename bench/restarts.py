"""Restarts: from a dead rank, a silent node or a lost node to the next step, on a busy local Slurm."""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

from bench.first_step import WORKLOAD, FirstStep, local_slurm, make_shared, time_of
from bench.measuring.programs import BaselineError
from bench.measuring.result import Result, Row, at_most, spread
from rehearsal.local_slurm import LocalSlurm

TITLE = "restarts, from a lost rank or node to the next step"
ROUNDS, _REQUEUES = 3, 2
_NODES = 4
_HANG_S = 15
"""Seconds without a step after which ranks count as hung; the default is 480."""
_START, _REQUEUE_S = 1.3, 15.0
_RUN = {"MAX_STEPS": "1000000", "CHECKPOINT_EVERY": "20", "EVAL_SEQUENCES": "0", "MAX_RESTARTS": "9"}
_STEPS, _TIMEOUT_S, _POLL_S = 30, 300.0, 0.05
_DETECTED = "made no step for"


class Job:
    """A run of gpt2 on two nodes of a Slurm on which another job waits for all nodes."""

    def __init__(
        self, slurm: LocalSlurm, variables: Mapping[str, str], name: str, *, spares: int = 0
    ) -> None:
        self._slurm = slurm
        shared = Path(variables["TRAINING_SHARED"])
        self._run_dir = shared / "runs" / WORKLOAD / name
        own = {**variables, **_RUN, "RUN_NAME": name, "SPARES": str(spares), "HANG_TIMEOUT_S": str(_HANG_S)}
        script = str(shared / "training" / "job.slurm")
        self.id = slurm.submit([f"--nodes={2 + spares}", script, WORKLOAD], env=own)
        self._wait(lambda: len(self._rows()) > _STEPS, "the first steps")

    def rank_of(self, node: str) -> psutil.Process:
        """Return the rank on a node."""
        return next(
            each for each in _processes(node) if f"{WORKLOAD}/train.py" in " ".join(each.cmdline()[-2:])
        )

    def nodes(self) -> list[str]:
        """Return the nodes of the newest start; the script runs on the first."""
        listed = self._starts()[-1].split()[3]
        hostnames = ["scontrol", "show", "hostnames", listed]
        env = self._slurm.client_env()
        done = subprocess.run(hostnames, env=env, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def to_next_step(self, break_it: Callable[[], None]) -> float:
        """Return the seconds from a fault to the first step of the next start."""
        starts, began = len(self._starts()), time.time()
        break_it()
        self._wait(lambda: len(self._starts()) > starts, "the next start")
        seen = time.time()  # the start removes the rows of the steps that it repeats
        self._wait(lambda: self._last_step_at() > seen, "the next step")
        return min(at for at in map(time_of, self._rows()) if at > seen) - began

    def detected_s(self, break_it: Callable[[], None]) -> float:
        """Return the seconds from a fault until the watch ends the ranks."""
        output, began = self._slurm.job(self.id).output, time.time()
        break_it()
        self._wait(lambda: _DETECTED in output.read_text(encoding="utf-8"), "the detection")
        return time.time() - began

    def _last_step_at(self) -> float:
        return time_of(rows[-1]) if (rows := self._rows()) else 0.0

    def _rows(self) -> list[str]:
        file = self._run_dir / "metrics.jsonl"
        return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []

    def _starts(self) -> list[str]:
        return (self._run_dir / "starts").read_text(encoding="utf-8").splitlines()

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not holds():
            if time.monotonic() > deadline:
                raise BaselineError(f"job {self.id} did not reach {what} in {_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)


def measure() -> Result:
    """Measure a start of the ranks alone, and three kinds of restarts."""
    with (
        tempfile.TemporaryDirectory() as name,
        local_slurm(Path(name) / "slurm", nodes=_NODES) as slurm,
    ):
        folder = Path(name)
        alone = FirstStep(slurm, folder / "alone")
        starts = [alone.by_torchrun() for _ in range(ROUNDS)]
        variables = make_shared(folder / "busy")
        with _ended(slurm, Job(slurm, variables, "rank")) as job, _other(slurm) as other:
            ranks = [job.to_next_step(job.rank_of(job.nodes()[1]).kill) for _ in range(ROUNDS)]
            waits = slurm.job_state(other)
        requeued = []
        for number in range(_REQUEUES):
            with _ended(slurm, Job(slurm, variables, f"requeue-{number}")) as job:
                requeued.append(_lose(slurm, job))
        with _ended(slurm, Job(slurm, variables, "silent", spares=1)) as job:
            node = job.nodes()[1]
            detected = job.detected_s(lambda: _send(node, signal.SIGSTOP))
            silent = job.to_next_step(lambda: None)
            _scontrol(slurm, f"nodename={node}", "state=down", "reason=bench")
            _send(node, signal.SIGKILL)
    start = sorted(starts)[ROUNDS // 2]
    return Result(
        rows=[
            Row(name="a start of the ranks alone (torchrun, no Slurm)", measured=spread(starts, " s")),
            at_most("a dead rank to the next step, against that", [each / start for each in ranks], _START),
            Row(name="the job that waits for all nodes meanwhile", measured=waits.lower()),
            at_most("a silent node, with a spare, after its detection", [silent / start], _START),
            Row(name="its detection", measured=f"{detected:.0f} s with HANG_TIMEOUT_S={_HANG_S}"),
            at_most(
                "a requeue for lack of nodes, without the start",
                [each - start for each in requeued],
                _REQUEUE_S,
                " s",
            ),
        ],
        figures={
            "start_s": starts,
            "rank_s": ranks,
            "silent_s": silent,
            "detected_s": detected,
            "requeue_s": requeued,
        },
        notes=[
            f"gpt2 in the size of a rehearsal on two of {_NODES} local nodes, and a job that waits for all "
            "nodes. The dead rank gets SIGKILL; all processes of the silent node, slurmd "
            "included, are stopped; the lost node is set DOWN, and no spare is there.",
        ],
    )


def _lose(slurm: LocalSlurm, job: Job) -> float:
    """Set the second node of a job down; return the seconds to the next step. Another one takes its name."""
    node = job.nodes()[1]
    seconds = job.to_next_step(lambda: _scontrol(slurm, f"nodename={node}", "state=down", "reason=bench"))
    _scontrol(slurm, f"nodename={node}", "state=power_down_force")
    return seconds


def _scontrol(slurm: LocalSlurm, *words: str) -> None:
    subprocess.run(["scontrol", "update", *words], env=slurm.client_env(), check=True)


@contextlib.contextmanager
def _ended(slurm: LocalSlurm, job: Job) -> Iterator[Job]:
    try:
        yield job
    finally:
        slurm.cancel(job.id)
        slurm.wait(job.id, timeout_s=_TIMEOUT_S)


@contextlib.contextmanager
def _other(slurm: LocalSlurm) -> Iterator[int]:
    """Let another job wait for all nodes."""
    job_id = slurm.submit([f"--nodes={_NODES}", "--exclusive", "--wrap", "sleep 600"])
    try:
        yield job_id
    finally:
        slurm.cancel(job_id)


def _processes(node: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            of_node = process.environ().get("SLURMD_NODENAME") == node
            if of_node or (process.name() == "slurmd" and node in process.cmdline()):
                yield process
            above = process.parent() if of_node else None
            if above and above.name().startswith("slurmstepd"):
                yield above


def _send(node: str, number: signal.Signals) -> None:
    for process in set(_processes(node)):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
