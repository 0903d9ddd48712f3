"""Weights and token shards of gpt2, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; INIT_FROM (weights.py), CORPUS (corpus.py),
VOCAB_SIZE (of a tokenizer trained here), PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY,
TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN (trainkit/data/hub.py).

Writes $DATA_DIR/<corpus>-<tokenizer>/ (shards, manifest.json, tokenizer.json), $DATA_DIR/models/ and
$DATA_DIR/downloads/, and $RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was
interrupted; downloads from the bucket what is there, and uploads what was made here.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import corpus
from settings import VOCAB_SIZES
from trainkit.data import bpe
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import sample
from trainkit.data.hub_text import Download, fetched_documents
from trainkit.data.lifecycle import (
    check_space,
    have_shards,
    is_made_of,
    is_of_text,
    main,
    note_for_training,
    note_made_of,
    remaining_units,
    show_units,
    whole_number,
    worker_count,
)
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import MANIFEST, Manifest, read_manifest, sha256_of
from trainkit.data.tokenize_unit import Recipe, Unit
from trainkit.run.settings import VALIDATION_SHARES
from weights import WeightsError, find_weights

WORKLOAD = "gpt2"
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The text, tokenizer and split of a run."""

    data: Path
    corpus: str
    init_from: str
    weights: Path | None
    vocab_size: int
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        return self.data / f"{self.corpus}-{self.label()}"

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the text; None if there is none."""
        return corpus.fingerprint(self.corpus, data=self.data)

    def label(self) -> str:
        """Return the tokenizer's name in the name of the folder."""
        if self.weights is None:
            return f"vocab-{self.vocab_size}"
        if self.weights.parent == self.data / "models":
            return self.weights.name
        own = sha256_of(self.weights / TOKENIZER)
        for manifest in sorted(self.data.glob(f"{self.corpus}-*/{MANIFEST}")):
            if read_manifest(manifest.parent).tokenizer_sha256 == own:
                # The weights are a checkpoint of this trainer, whose data keeps its original name.
                return manifest.parent.name.removeprefix(f"{self.corpus}-")
        return f"bpe-{own[:8]}"

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made of this text, with this tokenizer."""
        return is_of_text(manifest, self.fingerprint, validation_every=self.validation_every) and (
            self.weights is None or manifest.tokenizer_sha256 == sha256_of(self.weights / TOKENIZER)
        )


def run() -> None:
    """Prepare weights and shards, and record both for train.py."""
    data = Path(os.environ["DATA_DIR"])
    bucket = DatasetBucket.of_workload(WORKLOAD)
    name = corpus.choose(os.environ.get("CORPUS", ""), data=data)
    vocab_size = whole_number("VOCAB_SIZE", 50257, VOCAB_SIZES)
    validation_every, workers = (
        whole_number("VALIDATION_EVERY", corpus.VALIDATION_EVERY[name], VALIDATION_SHARES),
        worker_count(),
    )
    init_from = os.environ.get("INIT_FROM") or "gpt2"
    config = DataConfig(
        data=data,
        corpus=name,
        init_from=init_from,
        weights=find_weights(init_from, data=data, bucket=bucket),
        vocab_size=vocab_size,
        validation_every=validation_every,
        workers=workers,
    )
    shared = None if name == "machine" else bucket
    have_shards(config, shared, lambda: make(config))
    note_for_training(
        corpus=name,
        shards=str(config.folder),
        init_from=init_from,
        weights=str(config.weights) if config.weights else None,
    )


def make(config: DataConfig) -> Manifest:
    """Read the text and write the shards."""
    units = corpus.units(config.corpus, data=config.data)
    show_units(units, workers=config.workers)
    config.folder.mkdir(parents=True, exist_ok=True)
    tokenizer = bpe.Bpe((tokenizer_of(config, units),))
    recipe = Recipe(
        folder=config.folder,
        units=units,
        read=fetched_documents,
        encoder=tokenizer,
        vocab_size=tokenizer.vocab_size,
        tokenizer_sha256=tokenizer.sha256,
        source={
            "corpus": config.corpus,
            "fingerprint": config.fingerprint,
            "validation_every": config.validation_every,
            "parts": [{"name": unit.name, "size_bytes": unit.size_bytes} for unit in units],
        },
        validation_every=config.validation_every,
    )
    remaining = remaining_units(recipe)
    fetched = [u for u in remaining if isinstance(u, Download) and not u.file.is_file()]
    check_space(config.folder, sum(unit.size_bytes for unit in [*remaining, *fetched]))
    return prepare(recipe, workers=config.workers, also=lambda: downloaded(config))


def downloaded(config: DataConfig) -> str:
    """Return the progress of the download, to append to a progress line."""
    return corpus.OPENWEBTEXT.downloaded(config.data) if config.corpus == "openwebtext" else ""


def tokenizer_of(config: DataConfig, units: tuple[Unit, ...]) -> Path:
    """Put tokenizer.json beside the shards: the weights' own, or one trained once for a text."""
    file = config.folder / TOKENIZER
    if config.weights:
        shutil.copyfile(config.weights / TOKENIZER, file)
        return file
    made_of = f"{config.fingerprint} {config.vocab_size}\n"
    if not is_made_of(file, made_of):
        bpe.train(bpe.Bpe((file,)), sample(units, read=fetched_documents), vocab_size=config.vocab_size)
        note_made_of(file, made_of)
    return file


if __name__ == "__main__":
    main(run, WeightsError)
