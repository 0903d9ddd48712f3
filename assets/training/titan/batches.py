"""Batches as torchtitan's data loaders: of token shards, decided by seed and position alone, and of streams.

The state of shards is one number, the sequences that all ranks have taken, so a resume continues with the
next one on any number of data-parallel ranks; the order, with a mixture's weights, is stored with it and
compared. Streams of the Hugging Face hub (DATA=hf:...) are torchtitan's own: tokenized on the way, with each
data-parallel rank's place in the checkpoint, which therefore loads on as many ranks as wrote it.

This is all that knows torchtitan's loaders, which its next version replaces.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from datasets import IterableDataset, load_dataset
from texts import address
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import IGNORE_INDEX
from torchtitan.hf_datasets import DatasetConfig
from torchtitan.hf_datasets.text_datasets import (
    DATASETS,
    HFDataSource,
    InterleavedHuggingFaceTextDataLoader,
)
from trainkit.data.mixture import Mixture, Part
from trainkit.data.shards import FIRST, ID_BITS, TRAINED, Tokens, read_manifest

SHUFFLED_ROWS = 1000
"""Rows of a stream that are shuffled with each other."""
Ids = np.ndarray[Any, np.dtype[np.int64]]


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
        """Id behind each document; attention and loss do not cross it. Packed shards mark it."""

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
        manifests = {Path(each): read_manifest(Path(each)) for each in config.folders}
        self._tokens = [Tokens(folder, each, config.split) for folder, each in manifests.items()]
        self._is_packed = any(each.packed for each in manifests.values())
        self._config, self._length = config, seq_len
        self._ranks, self._rank, self._rows = dp_world_size, dp_rank, local_batch_size
        self._order = Mixture(
            parts=config.parts,
            sequences=tuple(each.sequences(config.split, seq_len) for each in manifests.values()),
            seed=config.seed,
        )
        self._taken = 0

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        """Yield inputs and positions, and labels: each (local batch, sequence) int64."""
        while True:
            places = self._order.batch(self._taken, size=self._rows, rank=self._rank)
            # The position is the next batch's before this one is trained on: a checkpoint has it.
            self._taken += self._ranks * self._rows
            # The tokens of each sequence, and of a stream the one after it.
            rows = np.stack(
                [
                    self._tokens[text].window(sequence * self._length, self._length + (not self._is_packed))
                    for text, sequence in places
                ]
            )
            yield self._example(rows)

    def _example(self, rows: Ids) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        inputs, labels, begins = self._of_packed(rows) if self._is_packed else self._of_stream(rows)
        at = np.broadcast_to(np.arange(self._length), inputs.shape)
        positions = at - np.maximum.accumulate(np.where(begins, at, 0), axis=1)
        given = {"input": torch.from_numpy(inputs), "positions": torch.from_numpy(positions)}
        return given, torch.from_numpy(labels)

    def _of_stream(self, rows: Ids) -> tuple[Ids, Ids, np.ndarray[Any, Any]]:
        """Return inputs and labels, and where a document begins."""
        inputs, labels = rows[:, :-1].copy(), rows[:, 1:].copy()
        is_end = inputs == self._config.end_of_text
        # The next document's first token does not follow from this one.
        labels[is_end] = IGNORE_INDEX
        return inputs, labels, np.roll(is_end, 1, axis=1)

    @staticmethod
    def _of_packed(rows: Ids) -> tuple[Ids, Ids, np.ndarray[Any, Any]]:
        """Return inputs and labels, and where an example begins."""
        ids = rows & ID_BITS
        # A sequence ends with its last example, so its last token has no label.
        labels = np.where(rows & TRAINED, np.roll(ids, -1, axis=1), IGNORE_INDEX)
        return ids, labels, (rows & FIRST).astype(bool)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of sequences that all ranks have taken, and their order."""
        return {"sequences": self._taken, "order": self._order.note()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue after that number; die if the sequences were taken in another order."""
        self._order.check("the checkpoint", state_dict.get("order"))
        self._taken = int(state_dict.get("sequences", 0))


def streams(
    parts: Sequence[Part], *, splits: Sequence[str], seed: int, workers: int
) -> InterleavedHuggingFaceTextDataLoader.Config:
    """Return the loader's config of a split of each data set, by its column "text".

    Args:
        workers: processes that read and tokenize; at most the files of a rank, since torchtitan's loader
            would loop forever in one without a file. With none, for validation, nothing is shuffled.
    """
    sources = []
    for part, split in zip(parts, splits, strict=True):
        path, configuration = address(part.name)
        # torchtitan looks names up in small letters.
        key = f"{part.name} {split}".lower()
        load = partial(open_stream, configuration=configuration, split=split, seed=seed if workers else None)
        DATASETS[key] = DatasetConfig(path=path, loader=load, sample_processor=itemgetter("text"))
        sources.append(HFDataSource(dataset=key, weight=part.weight))
    return InterleavedHuggingFaceTextDataLoader.Config(sources=sources, seed=seed, num_workers=workers)


def open_stream(path: str, *, configuration: str | None, split: str, seed: int | None) -> IterableDataset:
    """Return a split of a data set, whose files and blocks of rows are shuffled by the seed.

    IterableDataset.shuffle would lose what its buffer holds at each resume; a block is read again instead.
    """
    found = load_dataset(path, name=configuration, split=split, streaming=True)
    if seed is None:
        return found
    files = found._ex_iterable.shuffle_data_sources(np.random.default_rng(seed))
    rows = IterableDataset(files, info=found.info, split=found.split).select_columns(["text"])
    return rows.map(partial(_shuffle, seed=seed), batched=True, batch_size=SHUFFLED_ROWS)


def _shuffle(block: dict[str, list[str]], *, seed: int) -> dict[str, list[str]]:
    texts = block["text"]
    return {"text": random.Random(f"{seed} {texts[0]}").sample(texts, len(texts))}  # noqa: S311 (no secret)
