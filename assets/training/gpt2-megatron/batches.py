"""The samples of the ranks: Megatron's GPTDataset, in an order that depends only on the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from settings import Settings, Sizes
from trainkit import validation
from trainkit.data.indexed import CACHE

FIELDS = ("tokens", "labels", "position_ids")
SPLITS = ("train", "val")


@dataclass(frozen=True)
class Vocabulary:
    """The part of a tokenizer that GPTDataset needs, since the text is already tokenized."""

    vocab_size: int
    eod: int

    @property
    def unique_identifiers(self) -> dict[str, int]:
        """A part of the names of the index files that GPTDataset keeps."""
        return {"vocab_size": self.vocab_size, "eod": self.eod}


class Samples:
    """One split, repeated; each epoch has its own order.

    Unlike GPTDataset's, the order does not depend on the number of samples of a run, so a run that continues
    with more steps reads the same samples as one that began with them.
    """

    def __init__(self, dataset: GPTDataset, *, seed: int) -> None:
        self.dataset, self._seed = dataset, seed
        self._epoch, self._order = -1, np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        """Count the samples of an epoch."""
        return len(self.dataset)

    def __getitem__(self, number: int) -> dict[str, Any]:
        epoch, at = divmod(number, len(self.dataset))
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng([self._seed, epoch]).permutation(len(self.dataset))
        sample: dict[str, Any] = self.dataset[int(self._order[at])]
        return sample


def open_samples(settings: Settings, prefixes: dict[str, Path], vocabulary: Vocabulary) -> dict[str, Samples]:
    """Open the splits that are read on every rank; the first rank writes the index files beside the data."""
    found = {}
    for at, split in enumerate(SPLITS if settings.eval_sequences else SPLITS[:1]):
        seed = settings.seed if split == "train" else validation.SEED  # which samples there are, too
        config = GPTDatasetConfig(
            random_seed=seed,
            sequence_length=settings.gpt2_context,
            blend_per_split=[([str(prefixes[split])], None) if i == at else None for i in range(3)],
            path_to_cache=str(prefixes["train"].parent / CACHE),
            tokenizer=vocabulary,
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            # Attention applies the causal mask itself.
            create_attention_mask=False,
        )
        builder = BlendedMegatronDatasetBuilder(GPTDataset, [None, None, None], lambda: True, config)
        found[split] = Samples(builder.build()[at], seed=seed)
    return found


def micro_batches(
    samples: Samples, *, first: int, count: int, size: int, sizes: Sizes, data_rank: int, device: torch.device
) -> Iterator[dict[str, torch.Tensor]]:
    """Yield `count` micro-batches of this data parallel rank, (size, context) each, from sample `first` on.

    All ranks together take `count` x data parallel ranks x `size` consecutive samples.
    """
    for micro_batch in range(count):
        begin = first + (micro_batch * sizes.data + data_rank) * size
        rows = [samples[number] for number in range(begin, begin + size)]
        yield batch_of(rows, device)


def batch_of(rows: list[dict[str, Any]], device: torch.device) -> dict[str, torch.Tensor]:
    """Return what the model reads of samples, (samples, context) each."""
    return {
        field: torch.stack([torch.as_tensor(row[field]) for row in rows]).to(device, non_blocking=True)
        for field in FIELDS
    }
