"""Proof that a workload survives: each case disturbs a run, and expects the losses of a run left alone.

A disturbance before the first checkpoint or after the last step would prove nothing, so such a case fails.
"""

import contextlib
import itertools
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import psutil

from rehearsal import processes
from rehearsal.local_slurm import SlurmError
from rehearsal.local_slurm.client import SlurmClient
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError, tail

CASES = {
    "kill": "the last rank is killed",
    "stop": "scancel; submitted again",
    "truncate": "scancel; the newest checkpoint is cut in half; submitted again",
    "disk": "the disk is full at the next checkpoint; then it has space again",
    "resize": "scancel; submitted again on one node",
    "node": "the last node is lost, and a spare replaces it",
}
WHOLE = "whole"
ROUNDING = 1e-4
"""Largest relative difference of losses that are added up in another order, as on a GPU or on fewer nodes."""
_SETTINGS = {"node": {"SPARES": "1"}}
_IN_TIME = "something could be done between its first checkpoint and its last step: raise MAX_STEPS"
_POLL_S, _TIMEOUT_S = 0.05, 1500.0


@dataclass
class Row:
    """Result of a case."""

    case: str
    at_step: int = 0
    resumed_from: int | None = None
    losses: str = ""
    problem: str = ""


@dataclass
class Proof:
    """A workload on a local Slurm, whose processes carry `marker`. The name of a run is its case."""

    slurm: SlurmClient
    marker: Mapping[str, str]
    shared: Path
    variables: Mapping[str, str]
    workload: str
    nodes: int
    job_id: int = 0

    def run(self, case: str) -> Row:
        """Run a case; the first one is WHOLE, which is left alone."""
        row = Row(case)
        try:
            self._submit(case, self.nodes + (case == "node"), **_SETTINGS.get(case, {}))
            self._until("its first step", lambda: bool(self._steps(case)))
            if case in CASES:
                self._disturb(case, row)
            elif not self._completes():
                raise self._ended()
            if not self._saved(case) or self._steps(case)[-1].get("loss") is None:
                raise RehearsalError("It wrote no checkpoint or no loss: docs/workloads.md says how.")
            if not row.losses:
                self._compare(case, row)
        except RehearsalError as error:
            row.problem = str(error)
            with contextlib.suppress(SlurmError):  # it has ended
                self.slurm.cancel(self.job_id)
        return row

    def _folder(self, kind: str, case: str) -> Path:
        return self.shared / kind / self.workload / case

    def _steps(self, case: str) -> list[dict[str, Any]]:
        """Return the rows of the steps so far."""
        file = self._folder("runs", case) / "metrics.jsonl"
        try:
            rows = [json.loads(line) for line in _text(file).splitlines(keepends=True) if line[-1] == "\n"]
            return [row for row in rows if "val_loss" not in row and int(row["step"])]
        except (ValueError, KeyError, TypeError) as error:
            raise RehearsalError(f"{file} has a row without a step: {error!r}") from None

    def _last(self, case: str) -> int:
        return int(rows[-1]["step"]) if (rows := self._steps(case)) else 0

    def _saved(self, case: str) -> int:
        return int(_text(self._folder("checkpoints", case) / "latest_step") or 0)

    def _submit(self, case: str, nodes: int, **settings: str) -> None:
        argv = [f"--nodes={nodes}", str(self.shared / "training" / "job.slurm"), self.workload]
        self.job_id = self.slurm.submit(argv, env={**self.variables, "RUN_NAME": case, **settings})

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until `holds`. Raises RehearsalError if the job ends before that."""
        for look in itertools.count(1):
            has_ended = look % 40 == 0 and self.slurm.job(self.job_id).has_ended
            if holds():
                return
            if has_ended:
                raise self._ended(f" before {what}")
            time.sleep(_POLL_S)

    def _completes(self) -> bool:
        return self.slurm.wait(self.job_id, timeout_s=_TIMEOUT_S).is_completed

    def _ended(self, when: str = "") -> RehearsalError:
        job = self.slurm.job(self.job_id)
        return RehearsalError(
            f"Job {job.job_id} was {job.state}{when}. The end of {job.output}:\n{tail(job.output, lines=25)}"
        )

    def _disturb(self, case: str, row: Row) -> None:
        """Disturb a run, wait until it has gone on to its end, and note from where."""
        ranks = self._ranks()  # beforehand, since the rest of the run may be short
        self._until(_IN_TIME, lambda: 0 < self._saved(case) < self._last(case))
        _send("STOP", ranks)
        before, saved = self._steps(case), self._saved(case)
        try:
            if not ranks or self._last(case) == self._last(WHOLE):
                raise RehearsalError(f"It ended before {_IN_TIME}")
            self._strike(case, *ranks[-1])
        finally:
            _send("CONT", ranks)
        if case == "disk":
            output = self.slurm.job(self.job_id).output
            self._until("it waited for space", lambda: ": waiting for space" in _text(output))
            before, saved = self._steps(case), self._saved(case)
            _mount("-o", "remount,size=50%", str(self._folder("checkpoints", case)))
        elif case not in {"kill", "node"}:
            if self._completes():
                raise RehearsalError("It finished as if nothing had happened")
            before, saved = self._steps(case), self._saved(case)
            if saved != self._last(case):
                raise RehearsalError(f"Asked to stop (SIGTERM), it saved nothing at step {self._last(case)}")
            if case == "truncate":
                saved = _cut(self._folder("checkpoints", case))
            self._submit(case, 1 if case == "resize" else self.nodes)
        row.at_step = int(before[-1]["step"])
        completes, folder = self._completes(), self._folder("runs", case)
        if case == "resize" and (outcome := _text(folder / "outcome")).startswith("refused "):
            row.losses = outcome.strip()
            return
        if not completes:
            raise self._ended()
        if _text(folder / "starts").count("\n") == 1:
            raise RehearsalError("Its ranks did not start a second time")
        # A step that is made again has a row with another time.
        rows = itertools.zip_longest(before, self._steps(case))
        first = next((new["step"] for old, new in rows if new and new != old), 0)
        row.resumed_from = first - 1
        # Ranks that are left may have made a step more, and saved it.
        if not saved < first <= row.at_step + (case != "truncate"):
            raise RehearsalError(f"It went on with step {first}, not after its checkpoint of step {saved}")

    def _ranks(self) -> list[tuple[int, int, str]]:
        """Return rank, process id and node of the processes that train, without their own for data."""
        found, wanted = {}, {**self.marker, "SLURM_JOB_ID": str(self.job_id)}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has just ended
                own = process.environ() if processes.carries(process, wanted) else {}
                if "RANK" in own and process.name() != "tee":  # launch.sh's
                    rank = (int(own["RANK"]), process.pid, own["SLURMD_NODENAME"])
                    found[process.pid] = (process.ppid(), rank)
        return sorted(rank for parent, rank in found.values() if parent not in found)

    def _strike(self, case: str, rank: int, pid: int, node: str) -> None:
        if case == "kill":
            _send("KILL", [(rank, pid, node)])
        elif case == "node":
            self.slurm.lose(node)
            processes.end({**self.marker, "SLURMD_NODENAME": node}, grace_s=0)
        elif case == "disk":  # it becomes as small as its content
            disk = os.statvfs(folder := self._folder("checkpoints", case))
            _mount("-o", f"remount,size={(disk.f_blocks - disk.f_bfree) * disk.f_frsize}", str(folder))
        else:
            self.slurm.cancel(self.job_id)

    def _compare(self, case: str, row: Row) -> None:
        """Compare with the run left alone."""
        ours, whole = ({each["step"]: each for each in self._steps(name)} for name in (case, WHOLE))
        far = {
            step: _distance(ours.get(step, {}), whole.get(step, {})) for step in ours.keys() | whole.keys()
        }
        worst = max(far.values())
        row.losses = f"differ by {worst:.0e}" if worst else "equal"
        if worst > ROUNDING:
            raise RehearsalError(f"Its losses differ from step {min(filter(far.get, far))} on")


def _distance(row: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the relative difference of two losses; infinity for a step that lacks, or has other tokens."""
    one, two = row.get("loss"), other.get("loss")
    if row.get("tokens") != other.get("tokens") or one is None or two is None:
        return math.inf
    return abs(float(one) - float(two)) / max(abs(float(two)), 1e-12)


def _text(file: Path) -> str:
    return file.read_text() if file.is_file() else ""


def _send(name: str, ranks: Sequence[tuple[int, int, str]]) -> None:
    subprocess.run(["kill", "-s", name, *(str(pid) for _, pid, _ in ranks)], check=False, capture_output=True)


def _cut(checkpoints: Path) -> int:
    """Cut the largest file of the newest checkpoint in half; return the step of the one before."""
    *others, newest = sorted(checkpoints.glob("step-*"))
    if not others:
        raise RehearsalError("It keeps one checkpoint alone: raise KEEP_CHECKPOINTS")
    size, file = max((file.stat().st_size, file) for file in newest.rglob("*") if file.is_file())
    os.truncate(file, size // 2)
    return int(others[-1].name.removeprefix("step-"))


def mount_disk(folder: Path) -> None:
    """Mount what the case `disk` fills. Nodes see it if they start after that."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "tmpfs", str(folder))


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RehearsalError(f"`mount {' '.join(arguments)}` failed: {done.stderr.strip()}")


def prove(proof: Proof, cases: Sequence[str], narrator: Narrator) -> None:
    """Run cases, and print a table of them. Raises RehearsalError if one fails."""
    with narrator.step("Whole", "A run that is left alone, to compare with."):
        whole = proof.run(WHOLE)
        if whole.problem:
            raise RehearsalError(whole.problem)
    rows = []
    for case in cases:
        with narrator.step(case.capitalize(), CASES[case]):
            rows.append(row := proof.run(case))
            narrator.say(row.problem or f"losses: {row.losses}")
    line = "{:9} {:>7} {:>12}  {:20} {}".format
    narrator.say(line("case", "at step", "resumed from", "losses", "what was done"))
    for row in rows:
        steps = "--" if row.resumed_from is None else (row.at_step, row.resumed_from)
        losses = "failed" if row.problem else shorten(row.losses, 20)
        narrator.say(line(row.case, *steps, losses, CASES[row.case]))
    if failed := [row.case for row in rows if row.problem]:
        raise RehearsalError(f"{len(failed)} of {len(cases)} cases failed: {', '.join(failed)}")
