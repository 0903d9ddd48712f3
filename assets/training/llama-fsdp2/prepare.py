"""Token shards of llama-fsdp2, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; CORPUS (text.py), TOKENIZER (a
tokenizer.json), LLAMA_SIZE and VOCAB_SIZE (of a tokenizer trained here), PREPARE_WORKERS (processes; all
cores), TRAINING_BUCKET.

Writes $DATA_DIR/<corpus>-<tokenizer>/ (shards, manifest.json, tokenizer.json) and $RUN_DIR/data.json, which
train.py reads. Skips what is done, finishes what was interrupted; takes from the bucket what is there, and
brings there what was made here.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import text
import tokenizer
from settings import read_settings, shape_of
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.lifecycle import (
    check_space,
    ensure_shards,
    made_once,
    main,
    note_for_training,
    show_units,
    worker_count,
)
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import Manifest, ShardError, sha256_of
from trainkit.data.tokenize_unit import Recipe

WORKLOAD = "llama-fsdp2"
TOKENIZER = "tokenizer.json"
# Every so manyth document.
VALIDATION_EVERY = 50
# The 256 bytes and the end of text.
LEAST_VOCABULARY = 257


@dataclass(frozen=True, kw_only=True)
class Order:
    """The text and the tokenizer to prepare."""

    data: Path
    corpus: str
    vocab_size: int
    given_tokenizer: Path | None
    workers: int

    @property
    def folder(self) -> Path:
        """Folder of the shards, which may not exist yet."""
        if self.given_tokenizer:
            return self.data / f"{self.corpus}-bpe-{sha256_of(self.given_tokenizer)[:8]}"
        return self.data / f"{self.corpus}-vocab-{self.vocab_size}"

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made from this text."""
        made_of = text.fingerprint(self.corpus, data=self.data)
        return made_of is None or manifest.source.get("fingerprint") == made_of


def run() -> None:
    """Find or make the shards, and note their folder for train.py."""
    order = read_order()
    # Text of a machine exists on every machine.
    bucket = None if order.corpus == text.MACHINE else DatasetBucket.of_workload(WORKLOAD)
    ensure_shards(order, bucket, make=lambda: make(order))
    note_for_training(corpus=order.corpus, shards=str(order.folder))


def read_order() -> Order:
    """Read the order from environment variables.

    Raises:
        ShardError: it makes no sense.
    """
    corpus = os.environ.get("CORPUS") or text.OWN
    if corpus not in text.CORPORA:
        raise ShardError(f'CORPUS is "{corpus}"; allowed: {", ".join(text.CORPORA)}.')
    given = os.environ.get("TOKENIZER")
    if given and not Path(given).is_file():
        raise ShardError(
            f"there is no file {given}: give the path of a tokenizer.json as TOKENIZER, or none."
        )
    vocab_size = shape_of(read_settings([])).vocab_size
    if vocab_size < LEAST_VOCABULARY:
        raise ShardError(f"VOCAB_SIZE is {vocab_size}: give {LEAST_VOCABULARY} or more.")
    return Order(
        data=Path(os.environ["DATA_DIR"]),
        corpus=corpus,
        vocab_size=vocab_size,
        given_tokenizer=Path(given) if given else None,
        workers=worker_count(),
    )


def make(order: Order) -> Manifest:
    """Read the text and write the shards."""
    units = text.units(order.corpus, data=order.data)
    check_space(order.data, sum(unit.size_bytes for unit in units))
    show_units(units, workers=order.workers)
    order.folder.mkdir(parents=True, exist_ok=True)
    file = tokenizer_of(order, units)
    recipe = Recipe(
        folder=order.folder,
        units=units,
        read=text.documents_of,
        encoder=tokenizer.Encoder(file),
        vocab_size=tokenizer.open_tokenizer(file).get_vocab_size(),
        tokenizer_sha256=sha256_of(file),
        source={
            "corpus": order.corpus,
            "fingerprint": text.fingerprint(order.corpus, data=order.data),
            "parts": [{"name": unit.name, "size_bytes": unit.size_bytes} for unit in units],
        },
        validation_every=VALIDATION_EVERY,
    )
    return prepare(recipe, workers=order.workers)


def tokenizer_of(order: Order, units: tuple[text.File, ...]) -> Path:
    """Put tokenizer.json beside the shards: the given one, or one that is trained once for a text."""
    file = order.folder / TOKENIZER
    if order.given_tokenizer:
        tokenizer.open_tokenizer(order.given_tokenizer)
        shutil.copyfile(order.given_tokenizer, file)
        return file
    made_of = f"{text.fingerprint(order.corpus, data=order.data)} {order.vocab_size}\n"
    return made_once(file, made_of, lambda to: tokenizer.train(units, to, vocab_size=order.vocab_size))


if __name__ == "__main__":
    main(run)
