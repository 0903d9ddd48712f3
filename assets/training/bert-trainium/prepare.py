"""Sentence pairs of bert-trainium as shards, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; CORPUS (raw, machine), VOCAB_SIZE (of a
vocabulary trained here), BERT_CONTEXT, PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY,
TRAINING_BUCKET.

The text: DATA_DIR/raw/*.txt, or what lies on any machine. The vocabulary: DATA_DIR/raw/vocab.txt (that of
bert-base-uncased, say), or datasets/bert-trainium/vocab.txt of the bucket, else one trained on the text.
Writes $DATA_DIR/<corpus>-<vocabulary>-<context>/ (shards, manifest.json, tokenizer.json) and
$RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was interrupted; takes from the
bucket what is there, and brings there what was made here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bert_settings import Settings, read_settings
from text_pieces import Piece, documents_of, pieces_of, sample
from trainkit.data import corpus as machine_text
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.ordered import is_done, take
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import (
    Manifest,
    ShardError,
    read_manifest,
    sha256_of,
)
from trainkit.data.tokenize_unit import Recipe
from trainkit.run.files import write_whole
from wordpiece import PairEncoder, from_vocabulary, open_tokenizer, special_of, train

WORKLOAD = "bert-trainium"
TOKENIZER, VOCABULARY = "tokenizer.json", "vocab.txt"
OWN, MACHINE = "raw", "machine"
# What BERT's alphabet and special tokens take; an id is two bytes in the files.
VOCAB_SIZES = range(300, 65_537)
# A row of 130 numbers holds about 500 characters, and few of them are padding.
SHARD_BYTES_A_TEXT_BYTE = 0.7


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be prepared."""

    data: Path
    corpus: str
    settings: Settings
    vocabulary: Path | None
    """A vocab.txt that was given."""
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """Where the shards are, or will be."""
        size = self.settings.vocab_size
        name = f"given-{sha256_of(self.vocabulary)[:8]}" if self.vocabulary else f"vocab-{size}"
        return self.data / f"{self.corpus}-{name}-{self.settings.bert_context}"

    def fingerprint(self) -> str | None:
        """Of the text: changes when it would, reads no big file. None: any, for there is no text."""
        if self.corpus == MACHINE:
            return machine_text.fingerprint()
        lines = [f"{f.name} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in own_files(self.data)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else None

    def fits(self, manifest: Manifest) -> bool:
        """Whether shards are made from this text, in this way."""
        text = self.fingerprint()
        source = manifest.source
        same = text is None or source.get("fingerprint") == text
        return same and source.get("validation_every") == self.validation_every


def own_files(data: Path) -> list[Path]:
    """The text in DATA_DIR/raw, by name."""
    return sorted(file for file in (data / OWN).glob("*.txt") if file.name != VOCABULARY)


def main() -> None:
    """Prepare once; one sentence if it cannot be."""
    try:
        run()
    except ShardError as error:
        sys.exit(f"prepare.py: {error}")
    except KeyboardInterrupt:
        sys.exit("prepare.py: interrupted; finished shards are kept, submit again.")


def run() -> None:
    """Shards, then a note of where they are for train.py."""
    data, run_dir = Path(os.environ["DATA_DIR"]), Path(os.environ["RUN_DIR"])
    settings = read_settings([])
    corpus = os.environ.get("CORPUS") or OWN
    if corpus not in {OWN, MACHINE}:
        raise ShardError(f'CORPUS is "{corpus}"; allowed: {OWN}, {MACHINE}.')
    if settings.vocab_size not in VOCAB_SIZES:
        raise ShardError(
            f"VOCAB_SIZE is {settings.vocab_size}: give a number from {VOCAB_SIZES[0]} to {VOCAB_SIZES[-1]}."
        )
    bucket = DatasetBucket.of_workload(WORKLOAD)
    order = Order(
        data=data,
        corpus=corpus,
        settings=settings,
        vocabulary=given_vocabulary(data, corpus, bucket),
        validation_every=number("VALIDATION_EVERY", 20, least=2),
        workers=number("PREPARE_WORKERS", len(os.sched_getaffinity(0)), least=1),
    )
    if is_done(order):
        print(f"data: {order.folder} is there")
    elif bucket is None or not take(order, bucket):
        make(order)
    # Text of a machine lies on every machine.
    if bucket and corpus == OWN:
        bring(order, bucket)
    write_whole(run_dir / "data.json", json.dumps({"shards": str(order.folder)}) + "\n")


def number(name: str, default: int, *, least: int) -> int:
    """A variable that is a whole number.

    Raises:
        ShardError: it is none, or too small.
    """
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or int(text) < least:
        raise ShardError(f"{name} is {text!r}: give a whole number, {least} or more.")
    return int(text)


def given_vocabulary(data: Path, corpus: str, bucket: DatasetBucket | None) -> Path | None:
    """vocab.txt beside the user's text, fetched from the bucket if it is there; for that text only."""
    file = data / OWN / VOCABULARY
    if corpus != OWN:
        return None
    if not file.is_file() and bucket:
        try:
            if bucket.head(VOCABULARY):
                bucket.download(VOCABULARY, file)
        except BucketError as error:
            print(f"data: no {VOCABULARY} from the bucket: {error}", file=sys.stderr)
    return file if file.is_file() else None


def bring(order: Order, bucket: DatasetBucket) -> None:
    """Upload the shards; what is there already is left."""
    try:
        bucket.upload_shards(order.folder.name, order.folder, read_manifest(order.folder))
    except BucketError as error:
        print(f"data: not in the bucket, and training goes on without: {error}", file=sys.stderr)


def make(order: Order) -> None:
    """Read the text and write the shards."""
    started = time.monotonic()
    files = machine_text.gather(order.data / MACHINE) if order.corpus == MACHINE else own_files(order.data)
    pieces = pieces_of(files, context=order.settings.bert_context)
    if not pieces:
        raise ShardError(
            f"there is no text: put *.txt (UTF-8, an empty line between articles) into {order.data / OWN}, "
            f"or take the little that lies on this machine, to see it run: CORPUS={MACHINE}."
        )
    size = sum(piece.size_bytes for piece in pieces)
    for file in files[:8]:
        print(f"data: {file.stat().st_size:>15,} bytes  {file.name}")
    print(f"data: {size / 1e6:,.1f} MB in {len(pieces)} parts, {order.workers} processes")
    order.folder.mkdir(parents=True, exist_ok=True)
    check_space(order.folder, size)
    tokenizer_file = tokenizer_of(order, pieces)
    tokenizer = open_tokenizer(tokenizer_file)
    recipe = Recipe(
        folder=order.folder,
        units=pieces,
        read=documents_of,
        encoder=PairEncoder(tokenizer_file, order.settings.bert_context, order.validation_every),
        vocab_size=tokenizer.get_vocab_size(),
        tokenizer_sha256=sha256_of(tokenizer_file),
        source={
            "corpus": order.corpus,
            "fingerprint": order.fingerprint(),
            "validation_every": order.validation_every,
            "context": order.settings.bert_context,
            "special": dataclasses.asdict(special_of(tokenizer)),
        },
        validation_every=order.validation_every,
    )
    manifest = prepare(recipe, workers=order.workers)
    length = order.settings.bert_context + 2
    counts = ", ".join(f"{split} {manifest.tokens(split) // length:,}" for split in manifest.splits)
    print(
        f"data: {order.folder} made in {time.monotonic() - started:.1f} s: vocabulary "
        f"{manifest.vocab_size:,}, pairs: {counts}"
    )


def tokenizer_of(order: Order, pieces: tuple[Piece, ...]) -> Path:
    """tokenizer.json beside the shards: of the vocabulary given, or trained here, once for a text."""
    file, note = order.folder / TOKENIZER, order.folder / ".tokenizer-of"
    if order.vocabulary:
        from_vocabulary(order.vocabulary, file)
        return file
    size = order.settings.vocab_size
    made_of = f"{order.fingerprint()} {size}\n"
    if not (file.is_file() and note.is_file() and note.read_text(encoding="utf-8") == made_of):
        print(f"data: training a vocabulary of {size:,} tokens")
        train(sample(pieces), file, vocab_size=size)
        write_whole(note, made_of)
    return file


def check_space(folder: Path, text_bytes: int) -> None:
    """Say now that a file system is too small, and not in an hour."""
    wanted, free = int(text_bytes * SHARD_BYTES_A_TEXT_BYTE), shutil.disk_usage(folder).free
    if free < wanted:
        raise ShardError(
            f"the data needs about {wanted / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free: "
            "remove old runs there, or take less text."
        )


if __name__ == "__main__":
    main()
