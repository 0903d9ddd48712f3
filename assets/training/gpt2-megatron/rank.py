"""One rank's part of a training: its model, its samples, and the losses of its micro-batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from batches import Samples, batch_of, micro_batches
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from settings import Settings, Sizes
from trainkit.run.run import Run
from trainkit.validation import batches_of_rank


@dataclasses.dataclass(kw_only=True)
class Rank:
    """The state of this rank's training."""

    run: Run
    settings: Settings
    sizes: Sizes
    device: torch.device
    model: Any
    optimizer: Any
    schedule: Any
    samples: dict[str, Samples]

    def batches(self, *, first: int, count: int) -> list[dict[str, torch.Tensor]]:
        """Return this rank's micro-batches of a step, which ranks in the middle of a pipeline do not need."""
        if not (parallel_state.is_pipeline_first_stage() or parallel_state.is_pipeline_last_stage()):
            return [{}] * count
        found = micro_batches(
            self.samples["train"],
            first=first,
            count=count,
            size=self.settings.micro_batch_size,
            sizes=self.sizes,
            data_rank=parallel_state.get_data_parallel_rank(),
            device=self.device,
        )
        return list(found)

    def validation_batches(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield this rank's micro-batches of a validation, and how many samples each has."""
        place = {"rank": parallel_state.get_data_parallel_rank(), "ranks": self.sizes.data}
        samples, size = self.samples["val"], self.settings.micro_batch_size
        for own in batches_of_rank(len(samples), self.settings.eval_sequences, **place, size=size):
            rows = [samples.dataset[number] for number in own]
            # A pipeline has room for micro-batches of one size; the loss leaves out what is repeated.
            whole = batch_of([*rows, *rows[:1] * (size - len(rows))], self.device)
            yield whole | {"rows": len(own)}, len(own)

    def forward(self, batches: list[dict[str, Any]], *, backward: bool) -> tuple[float, int]:
        """Return sum and number of the micro-batches' losses; both are 0 before the last pipeline stage."""
        losses = get_forward_backward_func()(
            forward_step_func=forward_step,
            data_iterator=iter(batches),
            model=[self.model],
            num_microbatches=len(batches),
            seq_length=self.settings.gpt2_context,
            micro_batch_size=self.settings.micro_batch_size,
            forward_only=not backward,
        )
        # Tensor parallel ranks have the same loss: one of them counts.
        if not losses or parallel_state.get_tensor_model_parallel_rank():
            return 0.0, 0
        return float(torch.stack([each["loss"] for each in losses]).double().sum()), len(losses)

    def sum(self, *values: float) -> list[float]:
        """Return the sum of each value over all ranks, in one exchange."""
        own = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(own)
        found: list[float] = own.tolist()
        return found

    def seed(self, step: int) -> None:
        """Seed dropout by (seed, step, stage, data parallel rank), so that a resume needs no state."""
        key = [
            self.settings.seed,
            step,
            parallel_state.get_pipeline_model_parallel_rank(),
            parallel_state.get_data_parallel_rank(),
        ]
        model_parallel_cuda_manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0] >> 1))


def forward_step(batches: Any, model: Any) -> tuple[torch.Tensor, Any]:
    """Compute one micro-batch, as Megatron's schedules call it."""
    batch = next(batches)
    output = model(batch.get("tokens"), batch.get("position_ids"), None, labels=batch.get("labels"))
    return output, partial(mean_loss, rows=batch.get("rows"))


def mean_loss(losses: torch.Tensor, *, rows: int | None) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the mean over tokens twice, to learn from (Megatron divides it in place) and to report.

    Args:
        losses: (micro-batch, context); only those of the first `rows` count.
    """
    loss = losses[:rows].float().mean()
    return loss, {"loss": loss.detach().clone()}
