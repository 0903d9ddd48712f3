"""Token shards of llama-fsdp2, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; CORPUS (text.py), TOKENIZER (a
tokenizer.json), LLAMA_SIZE and VOCAB_SIZE (of a tokenizer trained here), PREPARE_WORKERS (processes; all
cores), TRAINING_BUCKET.

Writes $DATA_DIR/<corpus>-<tokenizer>/ (shards, manifest.json, tokenizer.json) and $RUN_DIR/data.json, which
train.py reads. Skips what is done, finishes what was interrupted; takes from the bucket what is there, and
brings there what was made here.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import text
import tokenizer
from settings import read_settings, shape_of
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.lifecycle import download, is_done
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import (
    Manifest,
    ShardError,
    read_manifest,
    sha256_of,
)
from trainkit.data.tokenize_unit import Recipe
from trainkit.run.files import write_whole

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


def main() -> None:
    """Prepare the shards; end the program with one sentence where it fails."""
    try:
        run()
    except ShardError as error:
        sys.exit(f"prepare.py: {error}")
    except KeyboardInterrupt:
        sys.exit("prepare.py: interrupted; finished shards are kept, submit again.")


def run() -> None:
    """Find or make the shards, and note their folder for train.py."""
    order = read_order()
    bucket = DatasetBucket.of_workload(WORKLOAD)
    if is_done(order):
        print(f"data: {order.folder} is there")
    elif bucket is None or not download(order, bucket):
        make(order)
    # Text of a machine exists on every machine.
    if bucket and order.corpus != text.MACHINE:
        try:
            bucket.upload_shards(order.folder.name, order.folder, read_manifest(order.folder))
        except BucketError as error:
            print(f"data: not in the bucket, and training goes on without: {error}", file=sys.stderr)
    note = {"corpus": order.corpus, "shards": str(order.folder)}
    write_whole(Path(os.environ["RUN_DIR"]) / "data.json", json.dumps(note) + "\n")


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
    workers = os.environ.get("PREPARE_WORKERS") or str(len(os.sched_getaffinity(0)))
    if not workers.isdecimal() or not int(workers):
        raise ShardError(f'PREPARE_WORKERS is "{workers}": give a number of processes.')
    return Order(
        data=Path(os.environ["DATA_DIR"]),
        corpus=corpus,
        vocab_size=vocab_size,
        given_tokenizer=Path(given) if given else None,
        workers=int(workers),
    )


def make(order: Order) -> None:
    """Read the text and write the shards."""
    started = time.monotonic()
    units = text.units(order.corpus, data=order.data)
    size = sum(unit.size_bytes for unit in units)
    check_space(order.data, size)
    print(f"data: {size / 1e6:,.1f} MB in {len(units)} files, {order.workers} processes")
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
    manifest = prepare(recipe, workers=order.workers)
    counts = ", ".join(f"{split} {manifest.tokens(split):,}" for split in manifest.splits)
    print(
        f"data: {order.folder} made in {time.monotonic() - started:.1f} s: vocabulary "
        f"{manifest.vocab_size:,}, tokens: {counts}"
    )


def tokenizer_of(order: Order, units: tuple[text.File, ...]) -> Path:
    """Put tokenizer.json beside the shards: the given one, or one that is trained once for a text."""
    file, note = order.folder / TOKENIZER, order.folder / ".tokenizer-of"
    if order.given_tokenizer:
        tokenizer.open_tokenizer(order.given_tokenizer)
        shutil.copyfile(order.given_tokenizer, file)
        return file
    made_of = f"{text.fingerprint(order.corpus, data=order.data)} {order.vocab_size}\n"
    if not (file.is_file() and note.is_file() and note.read_text(encoding="utf-8") == made_of):
        tokenizer.train(units, file, vocab_size=order.vocab_size)
        write_whole(note, made_of)
    return file


def check_space(folder: Path, text_bytes: int) -> None:
    """Refuse a file system that is too small, before an hour of work; tokens take no more bytes than text."""
    free = shutil.disk_usage(folder).free
    if free < text_bytes:
        raise ShardError(
            f"the tokens need up to {text_bytes / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free: "
            "remove old runs there, or take less text."
        )


if __name__ == "__main__":
    main()
