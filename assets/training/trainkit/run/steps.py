"""Rows of metrics.jsonl of one start, as torch trainers write and print them, and the memory of a rank."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Any

from trainkit.run.metrics import FILE, Metrics
from trainkit.run.mfu import mfu
from trainkit.run.run import Run
from trainkit.run.settings import TrainSettings


@dataclass(kw_only=True)
class Steps:
    """Rows of the steps behind a checkpoint; all ranks call it, and the first one writes."""

    run: Run
    settings: TrainSettings
    after: int
    """Step of the checkpoint; 0 without one."""
    device: Any
    """Device of this rank."""
    flops_per_token: float | None
    """Floating point operations of a token, forward and backward; None to leave out the MFU."""

    def __post_init__(self) -> None:
        """Remove the rows of steps that are repeated."""
        run = self.run
        self._metrics = Metrics(run.run_dir / FILE, after_step=self.after) if run.is_first else None

    def add(
        self,
        *,
        step: int,
        loss: float,
        learning_rate: float,
        tokens: int,
        tokens_per_s: float,
        step_s: float,
        data_s: float,
        flops_per_token: float | None = None,
        memory_bytes: int | None = None,
        seq_per_s: float | None = None,
        grad_norm: float | None = None,
    ) -> None:
        """Write a step, as Metrics.add describes it; print the first, the last, and each log_every-th.

        `flops_per_token` belongs to this step's batches, if it depends on them; `memory_bytes` is the peak,
        by default that of the process until now.
        """
        if not self._metrics:
            return
        flops, run = flops_per_token or self.flops_per_token, self.run
        line = self._metrics.add(
            step=step,
            loss=loss,
            learning_rate=learning_rate,
            tokens=tokens,
            tokens_per_s=tokens_per_s,
            step_s=step_s,
            data_s=data_s,
            memory_bytes=peak_bytes(self.device) if memory_bytes is None else memory_bytes,
            world_size=run.world_size,
            mfu=mfu(tokens_per_s, flops, run.peak_tflops, run.world_size) if flops else None,
            seq_per_s=seq_per_s,
            grad_norm=grad_norm,
        )
        if step % self.settings.log_every == 0 or step in {self.after + 1, self.settings.max_steps}:
            print(line if seq_per_s is None else f"{line}, {seq_per_s:,.1f} seq/s")

    def add_validation(self, *, step: int, loss: float, seconds: float) -> None:
        """Write and print the validation after a step; `seconds` belong to no step."""
        if self._metrics:
            print(self._metrics.add_validation(step=step, loss=loss, seconds=seconds))

    def saved(self, seconds: float, name: str = "save_s") -> None:
        """Note the seconds for which a save has just kept the steps waiting."""
        if self._metrics:
            self._metrics.saved(seconds, name)


def peak_bytes(device: Any) -> int:
    """Return the peak that torch reserved of a GPU's memory, else of resident memory (getrusage(2)).

    On an H100, nvidia-smi showed 1.6 GiB more (the CUDA context, and NCCL), and torch had allocated 6.7 GiB
    less, which are not free for anything else.
    """
    if str(device).startswith("cuda"):
        import torch  # noqa: PLC0415 (loads for seconds, and some trainers have none)

        return int(torch.cuda.max_memory_reserved(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
