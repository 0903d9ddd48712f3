"""Detection of a run that makes no steps: job.slurm runs it during the training, on the job's first node.

A step is a row of metrics.jsonl. The first step with all that precedes it, a save or a validation
($RUN_DIR/busy), and the time after the last step may each take LONG_S. The process group's timeout does not
end a rank that reads its data forever, since no rank waits in a collective.

At half of the limit all ranks write their stacks. At the limit the ranks are killed, and restarts.sh decides
whether the job starts again. The same holds when a rank has failed, and srun still waits for those of a node
that no longer answers. Only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from trainkit.run import outcome
from trainkit.run.metrics import FILE, last_row
from trainkit.run.run import Run
from trainkit.run.run_files import seconds, step_options
from trainkit.run.stacks import Stacks, folder_of, read
from trainkit.suspects import notify

BUSY = "busy"
LONG_S = 3600.0
MEDIANS = 10
"""Number of median row intervals without a row that count as a hang, if longer than HANG_TIMEOUT_S."""
_KEPT_STEPS, _MOST_NAMED = 99, 4
_SIGNAL_TIMEOUT_S, _AGAIN_S = 60, 30
# By slurmctld, since a scancel that is ended early may not have reached all nodes.
_SCANCEL_S, _END_S = 10, 0.5
FAILED = "failed"


@contextlib.contextmanager
def busy(run: Run, work: str) -> Iterator[None]:
    """Allow the ranks LONG_S without a step, for `work` that is not a step: saving, validating."""
    file = run.run_dir / BUSY
    if run.is_first:
        file.write_text(f"{work}\n", encoding="utf-8")
    yield
    if run.is_first:
        file.unlink()


class Heartbeat:
    """Age and usual length of the steps of a start; `began` is a Unix time, `now` of a monotonic clock."""

    def __init__(self, run_dir: Path, *, timeout_s: float, now: float, began: float) -> None:
        self._run_dir, self._timeout_s, self._since = run_dir, timeout_s, began
        self._size = _size(run_dir / FILE)
        self._row = self._of_earlier_start(last_row(run_dir / FILE))
        self._began, self._beat, self._busy_from = False, now, now
        self._lengths: list[float] = []
        self._first_s = 0.0

    def look(self, now: float) -> None:
        """Read the newest row, and record a new step."""
        size, row = _size(self._run_dir / FILE), last_row(self._run_dir / FILE)
        if size < self._size:  # this start has removed rows of steps that it repeats, and may have added one
            self._row = self._of_earlier_start(row)
        self._size = size
        if row and row != self._row:
            if self._began and self._row:
                # The interval between rows, since a workload may write one row for many steps.
                between_s = seconds(str(row.get("time"))) - seconds(str(self._row.get("time")))
                self._lengths = [*self._lengths[-_KEPT_STEPS:], between_s]
            else:
                self._first_s = float(row.get("step_s") or 0.0)
            self._row, self._beat, self._busy_from, self._began = row, now, now, True
        if any((self._run_dir / name).exists() for name in (BUSY, outcome.FILE)):
            # After the work, the next step gets its full time again.
            self._beat = max(self._beat, min(now, self._busy_from + LONG_S))
        else:
            self._busy_from = now

    def _of_earlier_start(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if row and seconds(str(row.get("time"))) < self._since else {}

    def limit_s(self, timeout_s: float = 0.0) -> float:
        """Return the seconds without a step that are a hang; after one row the length of its step is taken.

        Args:
            timeout_s: least number of seconds after the first step, by default this watch's.
        """
        if not self._began:
            return max(LONG_S, self._timeout_s)
        usual_s = median(self._lengths) if self._lengths else self._first_s
        return max(timeout_s or self._timeout_s, MEDIANS * usual_s)

    def silence_s(self, now: float) -> float:
        """Return the seconds since the last step of this start, before the first since the start."""
        return now - self._beat


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def suspects(ranks: list[Stacks]) -> list[tuple[Stacks, str]]:
    """Return the ranks that the others most likely wait for, each with the reason.

    A rank that did not answer the signal is stopped, or waits in the kernel. If all answered, it is the ranks
    whose stacks differ from most.
    """
    silent = [(each, "it did not answer a signal") for each in ranks if not each.innermost]
    if silent:
        return silent
    frames = Counter(each.innermost for each in ranks).most_common(1)
    if not frames or frames[0][1] * 2 <= len(ranks):
        return []
    return [(each, f"it was in {each.innermost}") for each in ranks if each.innermost != frames[0][0]]


def sentence(ranks: list[Stacks], silence_s: float) -> str:
    """Describe a hang in one sentence, with the ranks that are suspected."""
    found = suspects(ranks)
    if not found:
        return f"no rank made a step for {silence_s:.0f} s"
    named = "; ".join(
        f"rank {each.rank} on {each.host} made no step for {silence_s:.0f} s: {why}"
        for each, why in found[:_MOST_NAMED]
    )
    return named + (f"; and {len(found) - _MOST_NAMED} more ranks" if len(found) > _MOST_NAMED else "")


def write_stacks(folder: Path, timeout_s: float) -> None:
    """Let all ranks of the job write their stacks, for at most timeout_s: a node may not answer."""
    starter = Path(__file__).parents[2] / "run_module.py"
    module = [sys.executable, "-I", "-B", str(starter), "trainkit.run.stacks", str(folder)]
    step = ["srun", "--overlap", "--quiet", "--mpi=none", "--ntasks-per-node=1", *step_options()]
    try:
        subprocess.run([*step, *module], timeout=min(timeout_s, _SIGNAL_TIMEOUT_S), check=True)
    except (subprocess.SubprocessError, OSError) as error:
        _say(f"not all ranks could be asked for their stacks: {error}")


def kill_steps() -> None:
    """Kill the job's steps, not job.slurm, which then starts the training again or reports the failure.

    The steps that watch the nodes stay. Slurm's controller may be down meanwhile, so this tries again until
    it succeeds.
    """
    listing = ["squeue", "--noheader", "--steps", "--format=%i %j", f"--jobs={os.environ['THIS_JOB']}"]
    while True:
        try:
            listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines()
            named = [line.partition(" ") for line in listed]
            steps = [
                step for step, _, name in named if step.rpartition(".")[2].isdecimal() and name != "watch"
            ]
            if not steps:  # Slurm has ended them, and srun may wait for a lost node
                return
            subprocess.run(["scancel", "--ctld", "--signal=KILL", *steps], check=True, timeout=_SCANCEL_S)
        except subprocess.TimeoutExpired:
            return
        except (subprocess.SubprocessError, OSError) as error:
            _say(f"Slurm has not ended the ranks, and is asked again in {_AGAIN_S} s: {error}")
            time.sleep(_AGAIN_S)
        else:
            return


def end_group(group: int) -> None:
    """Kill srun, which waits for ranks of nodes that do not answer, if it does not end with the others.

    It has the time to print their last lines. Each node is asked for left-over ranks before the next start.
    """
    deadline = time.monotonic() + _END_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)


def is_being_ended() -> bool:
    """Return True if Slurm ends the job: a lost node, scancel, its time limit."""
    job = ["squeue", "--noheader", f"--jobs={os.environ['THIS_JOB']}", "--format=%T"]
    state = subprocess.run(job, capture_output=True, text=True, check=False).stdout.strip()
    return state == "COMPLETING"


def watch(run_dir: Path, ranks: int, *, began: float, timeout_s: float, ending_timeout_s: float) -> None:
    """Wait for a hang, write down its evidence, and kill the ranks; the caller ends it with the ranks.

    Args:
        run_dir: the run's folder.
        ranks: process group that waits for the ranks.
        began: Unix time of their start.
        timeout_s: seconds without a step that are a hang; at least MEDIANS of the usual ones are.
        ending_timeout_s: the same while Slurm ends the job, usually shorter. The ranks of a lost node no
            longer answer, and the others would wait for them until KillWait.
    """
    heartbeat = Heartbeat(run_dir, timeout_s=timeout_s, now=time.monotonic(), began=began)
    has_stacks = False
    folder, told, failed, stopped_s = folder_of(run_dir), notify(run_dir, None), 0.0, 0.0
    while True:
        pause_s = min(5.0, timeout_s / 10, ending_timeout_s / 10)
        wakes = time.monotonic() + pause_s
        time.sleep(pause_s)
        stopped_s += time.monotonic() - wakes  # `scontrol suspend` stops the ranks and this process
        told = notify(run_dir, told)
        now = time.monotonic() - stopped_s
        if not failed and (run_dir / FAILED).exists():
            failed = now
        if failed and now - failed >= ending_timeout_s:
            _say(f"ranks have not ended in the {ending_timeout_s:.0f} s since others failed: they are killed")
            kill_steps()
            end_group(ranks)
            return
        heartbeat.look(now)
        silence_s, limit_s = heartbeat.silence_s(now), heartbeat.limit_s()
        if heartbeat.limit_s(ending_timeout_s) <= silence_s < limit_s and is_being_ended():
            limit_s = silence_s
        if silence_s < limit_s / 2:
            has_stacks = False
        elif not has_stacks:
            has_stacks = True
            _say(f"no step for {silence_s:.0f} s: the ranks write their stacks into {folder}")
            write_stacks(folder, limit_s / 2)
        if silence_s >= limit_s:
            text = sentence(read(folder), silence_s)
            _say(f"{text}; the ranks are ended, their stacks are in {folder}")
            # The first failure is the cause, so an older one is kept.
            with (
                contextlib.suppress(FileExistsError),
                (run_dir / FAILED).open("x", encoding="utf-8") as file,
            ):
                file.write(f"{text}\n")
            kill_steps()
            end_group(ranks)
            return


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} heartbeat: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    watch(
        Path(sys.argv[1]),
        int(sys.argv[2]),
        began=float(sys.argv[3]) if len(sys.argv) > 3 else time.time(),  # noqa: PLR2004 - of an older job.slurm
        timeout_s=float(os.environ["HANG_TIMEOUT_S"]),
        ending_timeout_s=float(os.environ["AFTER_FAILURE_S"]),
    )
