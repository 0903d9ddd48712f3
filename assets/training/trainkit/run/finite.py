"""Check that a training step gave finite numbers, since weights that become NaN remain NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

from trainkit.run import checkpoints, outcome
from trainkit.run.run import Run, die

# Below this scale of fp16's loss, the scale is not the cause of overflowing gradients.
SMALLEST_LOSS_SCALE = 1.0


def check_finite(
    run: Run,
    *,
    step: int,
    loss: float,
    gradient_norm: float,
    loss_scale: float | None = None,
    finish_saving: Callable[[], object] | None = None,
) -> None:
    """Die unless the loss and the norm of the gradients are finite; call it before the step is saved.

    Both must be equal on all ranks (a mean over ranks, a norm of exchanged gradients), so that all ranks end
    in the same step. `loss_scale` is given with fp16, which skips an update whose
    gradients overflow and lowers the scale. `finish_saving` waits for checkpoints that are being written.
    """
    skipped = loss_scale is not None and loss_scale >= SMALLEST_LOSS_SCALE
    if math.isfinite(loss) and (skipped or math.isfinite(gradient_norm)):
        return
    if finish_saving:
        finish_saving()
    end_diverged(run, step=step, found=f"the loss is {loss} and the norm of the gradients {gradient_norm}")


def end_diverged(run: Run, *, step: int, found: str) -> NoReturn:
    """End this rank, name the last finite checkpoint, and keep job.slurm from starting the run again."""
    outcome.diverged(run, step)
    newest, _ = checkpoints.find_complete(run.checkpoint_dir)
    resume = "There is no checkpoint before it: submit again with"
    if newest:
        resume = (
            f"The last checkpoint with finite values is {newest}: to continue from it, submit with "
            f"RUN_NAME={run.run_dir.name} and"
        )
    die(
        f"step {step}: {found}: no checkpoint is written. {resume} a lower "
        "LEARNING_RATE or more WARMUP_STEPS."
    )
