"""The data, model and settings of one rank."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from accelerate import Accelerator
from ahead import Ahead
from model import NO_TOKEN
from settings import Prepared, Settings, Shape
from trainkit.data.order import Order
from trainkit.data.shards import Manifest, Tokens
from trainkit.run.run import Run


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rank:
    """The state of this rank's training."""

    run: Run
    settings: Settings
    shape: Shape
    prepared: Prepared
    manifest: Manifest
    accelerator: Accelerator

    def sums(self, *values: torch.Tensor | float) -> torch.Tensor:
        """Sum each value over the ranks, in one exchange, which the device may not have made yet."""
        exact = {"dtype": torch.float64, "device": self.accelerator.device}
        # Copying a number to a GPU waits for its pending work; full() does not.
        own = [v.to(**exact) if isinstance(v, torch.Tensor) else torch.full((), v, **exact) for v in values]
        summed = self.accelerator.reduce(torch.stack(own), reduction="sum")
        assert isinstance(summed, torch.Tensor)
        return summed.to("cpu", non_blocking=True)

    def tokens(self, split: str) -> Tokens:
        """Open the tokens of one split."""
        return Tokens(self.prepared.shards, self.manifest, split)

    def order(self, split: str) -> Order:
        """Return the order in which the sequences of one split are read."""
        sequences = self.manifest.tokens(split) // self.shape.context
        return Order(sequences=sequences, seed=self.settings.seed)

    def batch(self, split: str, tokens: Tokens, *, first: int, micro_step: int) -> torch.Tensor:
        """Read (batch_size, context) token ids, decided by the seed and the position `first` of the step."""
        sequences = self.order(split).batch(
            first,
            size=self.settings.batch_size,
            rank=self.run.rank,
            ranks=self.run.world_size,
            micro_step=micro_step,
        )
        return self.rows(tokens, sequences)

    def rows(self, tokens: Tokens, sequences: list[int]) -> torch.Tensor:
        """Read (batch_size, context) token ids; rows after the given sequences have no tokens to predict."""
        length = self.shape.context
        rows = torch.from_numpy(tokens.windows((each * length for each in sequences), length))
        rows = torch.nn.functional.pad(rows, (0, 0, 0, self.settings.batch_size - len(rows)), value=NO_TOKEN)
        if self.accelerator.device.type == "cuda":
            rows = rows.pin_memory()
        return rows.to(self.accelerator.device, non_blocking=True)

    def loss_of_first_batch(self, model: Any) -> Any:
        """Return a model's loss of the first rank's first batch, on every rank."""
        first_rank = dataclasses.replace(self, run=dataclasses.replace(self.run, rank=0))
        return model(first_rank.batch("train", self.tokens("train"), first=0, micro_step=0))

    def ahead(self) -> Ahead:
        """Return the reader of the micro-batches of each step."""
        tokens, count = self.tokens("train"), self.settings.gradient_accumulation
        return Ahead(
            lambda first: [self.batch("train", tokens, first=first, micro_step=i) for i in range(count)],
            sequences=self.run.world_size * count * self.settings.batch_size,
            is_on=self.settings.prefetch == "yes",
        )
