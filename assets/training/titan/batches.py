"""Batches of token shards as torchtitan's data loader: decided by seed and position alone.

The state is one number, the sequences that all ranks have taken, so a resume continues with the next one on
any number of data-parallel ranks; the order, with a mixture's weights, is stored with it and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import IGNORE_INDEX
from trainkit.data.mixture import Mixture, Part
from trainkit.data.shards import Tokens, read_manifest


class ShardLoader(BaseDataLoader):
    """Data loader of one split of one or several folders of token shards."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        """Options of the loader."""

        parts: Annotated[tuple[Part, ...], tyro.conf.Suppress] = ()
        folders: list[str] = field(default_factory=list)
        """Folder of the shards of each part."""
        split: str = "train"
        seed: int = 1337
        end_of_text: int = -1
        """Id behind each document; attention and loss do not cross it."""

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        seq_len: int,
        local_batch_size: int,
        **_: Any,
    ) -> None:
        folders = map(Path, config.folders)
        self._tokens = [Tokens(each, read_manifest(each), config.split) for each in folders]
        self._config, self._length = config, seq_len
        self._ranks, self._rank, self._rows = dp_world_size, dp_rank, local_batch_size
        self._order = Mixture(
            parts=config.parts,
            sequences=tuple((len(each) - 1) // seq_len for each in self._tokens),
            seed=config.seed,
        )
        self._taken = 0

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        """Yield inputs and positions, and labels: each (local batch, sequence) int64."""
        while True:
            places = self._order.batch(self._taken, size=self._rows, rank=self._rank)
            # The position is the next batch's before this one is trained on: a checkpoint has it.
            self._taken += self._ranks * self._rows
            # The tokens of each sequence, and the one after it.
            rows = [
                self._tokens[text].window(sequence * self._length, self._length + 1)
                for text, sequence in places
            ]
            yield self._example(np.stack(rows))

    def _example(
        self, rows: np.ndarray[Any, np.dtype[np.int64]]
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        inputs, labels = rows[:, :-1], rows[:, 1:].copy()
        is_end = inputs == self._config.end_of_text
        # The next document's first token does not follow from this one.
        labels[is_end] = IGNORE_INDEX
        places = np.broadcast_to(np.arange(self._length), inputs.shape)
        begins = np.zeros_like(inputs)
        begins[:, 1:] = np.where(is_end[:, :-1], places[:, 1:], 0)
        positions = places - np.maximum.accumulate(begins, axis=1)
        given = {"input": torch.from_numpy(inputs.copy()), "positions": torch.from_numpy(positions.copy())}
        return given, torch.from_numpy(labels)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of sequences that all ranks have taken, and their order."""
        return {"sequences": self._taken, "order": self._order.note()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue after that number; die if the sequences were taken in another order."""
        self._order.check("the checkpoint", state_dict.get("order"))
        self._taken = int(state_dict.get("sequences", 0))
