"""Batches and validations: all of titan that knows torchtitan's datasets, loaders and validator.

The state of shards is one number, the sequences that all ranks have taken, so a resume continues with the
next one on any number of data-parallel ranks; the order, with a mixture's weights, is stored with it and
compared. Streams of the Hugging Face hub (DATA=hf:...) are torchtitan's own: tokenized on the way, with each
data-parallel rank's place in the checkpoint, which therefore loads on as many ranks as wrote it.

Of torchtitan 0.3.0 this uses what follows. Its next version reads data by Grain (pull request 4088):

- BaseDataLoader: its Config and Stateful are the base of ShardLoader, which the trainer and the validator
  build with dp_world_size, dp_rank, seq_len and local_batch_size (then max_context_length and
  num_tokens_per_batch), and iterate over: {"input", "positions"} and labels.
- IGNORE_INDEX: the label of a token without one.
- Validator: the fields enable, steps and dataloader of its Config, which it copies with `infinite` (then
  `repeat`); its attributes dl_config, metrics_processor and parallel_dims; should_validate and validate.
- DATASETS, DatasetConfig, HFDataSource and InterleavedHuggingFaceTextDataLoader: streams (then a
  GrainDataLoader).
- The sentence "dataloader resharding" of its error about a stream on other ranks.

Trainer.Config has the results of loader_of and validation_of as `dataloader` and `validator`; its tokenizer,
which only streams use, is torchtitan's of the folder `hf_assets_path`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from datasets import IterableDataset, load_dataset
from fields import Settings
from texts import STREAM, address
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import IGNORE_INDEX
from torchtitan.components.validate import Validator
from torchtitan.hf_datasets import DatasetConfig
from torchtitan.hf_datasets.text_datasets import (
    DATASETS,
    HFDataSource,
    InterleavedHuggingFaceTextDataLoader,
)
from trainkit.data.mixture import Mixture, Part
from trainkit.data.shards import FIRST, ID_BITS, TRAINED, Tokens, read_manifest
from trainkit.run import process_group
from trainkit.run.run import Run, die, reason
from trainkit.validation import SEED

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
        wanted: Annotated[int, tyro.conf.Suppress] = 0
        """Sequences of a validation over all ranks: later ones, which fill its last batches, have no labels.
        0: all have."""

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
        wanted = self._config.wanted
        while True:
            first = self._taken + self._rank * self._rows
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
            given, labels = self._example(rows)
            if wanted:
                labels[max(0, wanted - first) :] = IGNORE_INDEX
            yield given, labels

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


class Validation(Validator):
    """torchtitan's validator at the steps of EVAL_EVERY, and after the last one."""

    config: Config

    @dataclass(kw_only=True, slots=True)
    class Config(Validator.Config):
        """torchtitan's options."""

        sequences: int = 0
        """Sequences of a validation over all ranks."""

    def __init__(self, config: Config, **parts: Any) -> None:
        steps = math.ceil(config.sequences / (parts["dp_world_size"] * parts["local_batch_size"]))
        # torchtitan sets `infinite` in the loader's config, which mixtures' configs lack; none of them ends.
        super().__init__(Validator.Config(steps=max(1, steps)), **parts)
        self.dl_config = config.dataloader

    def should_validate(self, step: int) -> bool:
        """Return True if a validation follows a step."""
        settings: Settings = self.metrics_processor.settings
        return settings.validates_after(step) or step == settings.max_steps

    def validate(self, model_parts: list[torch.nn.Module], step: int) -> None:
        """Validate, while the watch for hangs waits."""
        self.metrics_processor.start_clock()
        self.metrics_processor.stages = self if self.parallel_dims.pp_enabled else None
        with process_group.patient(Run.from_environment(), "validating"):
            super().validate(model_parts, step)


def validation_of(settings: Settings, data: dict[str, Any]) -> Validation.Config:
    """Return the validator's config of a run."""
    loader = loader_of(settings, data, split="val")
    wanted = getattr(loader, "wanted", 0) or settings.eval_sequences
    return Validation.Config(enable=bool(settings.eval_sequences), sequences=wanted, dataloader=loader)


def loader_of(settings: Settings, data: dict[str, Any], *, split: str) -> Any:
    """Return the config of the data loader of one split; an export reads no text.

    Args:
        data: what prepare.py noted: `shards` (a folder a text) and `end_of_text`, or for streams `val_splits`
            and `workers`, the processes of a rank that read and tokenize.
    """
    parts = settings.parts
    if settings.export_run:
        return ShardLoader.Config()
    if parts[0].name.startswith(STREAM):
        return streams_of(settings, data, splits=data["val_splits"] if split == "val" else [])
    options = {"parts": parts, "folders": data["shards"], "split": split, "end_of_text": data["end_of_text"]}
    if split == "train" or not settings.eval_sequences:
        return ShardLoader.Config(**options, seed=settings.seed)
    manifests = [read_manifest(Path(each)) for each in data["shards"]]
    whole = sum(each.sequences(split, settings.seq_len) for each in manifests)
    return ShardLoader.Config(**options, seed=SEED, wanted=min(settings.eval_sequences, whole))


class StreamLoader(InterleavedHuggingFaceTextDataLoader):
    """torchtitan's loader of streams, which names a checkpoint whose place in them it cannot find."""

    @dataclass(kw_only=True, slots=True)
    class Config(InterleavedHuggingFaceTextDataLoader.Config):
        """torchtitan's options."""

    def __iter__(self) -> Any:
        """Return the batches behind the checkpoint's; die if an earlier version read streams otherwise."""
        try:
            return super().__iter__()
        except AssertionError as error:  # torchdata's, of a state that processes did not write
            die(
                "the checkpoint is of a version that read streams in the order of their files "
                f"({reason(error, line=0)}): export its weights (EXPORT_RUN=NAME, EXPORT_TO=/FOLDER), and "
                "begin another RUN_NAME with INIT_FROM=/FOLDER."
            )


def streams_of(settings: Settings, data: dict[str, Any], *, splits: list[str]) -> StreamLoader.Config:
    """Return the loader's config of a split of each data set, by its column "text".

    torchtitan's loader would loop forever in a process that has no file.

    Args:
        splits: the split of each data set of a validation, of which nothing is shuffled; none for `train`.
    """
    sources = []
    for i, part in enumerate(settings.parts):
        path, configuration = address(part.name)
        split = splits[i] if splits else "train"
        # torchtitan looks names up in small letters.
        key = f"{part.name} {split}".lower()
        seed = None if splits else settings.seed
        load = partial(open_stream, configuration=configuration, split=split, seed=seed)
        DATASETS[key] = DatasetConfig(path=path, loader=load, sample_processor=itemgetter("text"))
        sources.append(HFDataSource(dataset=key, weight=part.weight))
    workers = 0 if splits else data["workers"]
    return StreamLoader.Config(sources=sources, seed=settings.seed, num_workers=workers)


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


def check_place(checkpoint: Path | None, error: BaseException) -> None:
    """Die if a checkpoint cannot be loaded because of the place in its data."""
    if "dataloader resharding" in str(error):
        die(
            f"{checkpoint} was written by another number of data-parallel ranks, and torchtitan's loaders of "
            "streams cannot change that: submit on as many nodes as before."
        )
    if "dataloader." in str(error):
        die(
            f"{checkpoint} was written with other data (a stream in the place of shards, or the reverse), of "
            "a stream on another number of ranks, or by an older version: give its DATA and as many nodes, "
            "or another RUN_NAME."
        )
