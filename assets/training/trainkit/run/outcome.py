"""Outcome of a run for job.slurm, in $RUN_DIR/outcome.

It holds `finished`, `stopped STEP`, `diverged STEP` or `refused REASON`.
"""

from __future__ import annotations

from trainkit.run.checkpoints import check_is_newest
from trainkit.run.files import write_whole
from trainkit.run.metrics import FILE as METRICS
from trainkit.run.metrics import summary_of
from trainkit.run.run import Run

FILE = "outcome"


def ended(run: Run, stopped_at: int | None) -> None:
    """Record and print the end of a training: the last step is done, or a stop was asked for and saved."""
    if stopped_at is not None:
        stopped(run, stopped_at)
        said = f"stopped on request, saved at step {stopped_at}: submit with the same RUN_NAME to continue"
    else:
        finished(run)
        said = f"finished: {summary_of(run.run_dir / METRICS)}"
    if run.is_first:
        print(said)


def finished(run: Run) -> None:
    """Record that every step is done and saved; only the first rank writes."""
    _write(run, "finished")


def stopped(run: Run, step: int) -> None:
    """Record a stop that was asked for and saved at `step`; only the first rank writes."""
    _write(run, f"stopped {step}")


def diverged(run: Run, step: int) -> None:
    """Record that `step` gave numbers that are not finite.

    Every rank writes the same words, since the end of one rank ends the others.
    """
    check_is_newest()
    (run.run_dir / FILE).write_text(f"diverged {step}\n", encoding="utf-8")


def refused(run: Run, reason: str) -> None:
    """Record why the run may not continue as it was started.

    Every rank that refuses writes the same words, since the end of one rank ends the others.
    """
    check_is_newest()
    (run.run_dir / FILE).write_text(f"refused {reason}\n", encoding="utf-8")


def _write(run: Run, text: str) -> None:
    if run.is_first:
        check_is_newest()
        write_whole(run.run_dir / FILE, f"{text}\n")
