"""How a run ended, told to job.slurm: $RUN_DIR/outcome holds `finished` or `stopped STEP`."""

from __future__ import annotations

from training_common.files import write_whole
from training_common.run import Run

FILE = "outcome"


def finished(run: Run) -> None:
    """Every step is done, and saved. Ranks but the first write nothing."""
    _write(run, "finished")


def stopped(run: Run, step: int) -> None:
    """Told to stop, and saved at `step`. Ranks but the first write nothing."""
    _write(run, f"stopped {step}")


def _write(run: Run, text: str) -> None:
    if run.is_first:
        write_whole(run.run_dir / FILE, f"{text}\n")
