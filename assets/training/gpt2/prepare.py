"""Weights and token shards of gpt2, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; INIT_FROM (weights.py), CORPUS (corpus.py),
VOCAB_SIZE (of a tokenizer trained here), PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY,
TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN (hub.py).

Writes $DATA_DIR/<corpus>-<tokenizer>/ (shards, manifest.json, tokenizer.json), $DATA_DIR/models/ and
$DATA_DIR/downloads/, and $RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was
interrupted; takes from the bucket what is there, and brings there what was made here.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import corpus
from bpe import Bpe, open_tokenizer, train_bpe
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.ordered import is_done, take
from trainkit.data.prepare_tokens import Recipe, Unit, finished, prepare
from trainkit.data.shards import (
    MANIFEST,
    Manifest,
    ShardError,
    read_manifest,
    sha256_of,
)
from trainkit.run.files import write_whole
from weights import WeightsError, find_weights

WORKLOAD = "gpt2"
TOKENIZER = "tokenizer.json"
# The 256 bytes and the end of text have to fit; a token is two bytes in the files.
VOCAB_SIZES = range(300, 65_537)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be prepared."""

    data: Path
    corpus: str
    init_from: str
    weights: Path | None
    vocab_size: int
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """Where the shards are, or will be."""
        return self.data / f"{self.corpus}-{self.label()}"

    def label(self) -> str:
        """Names the tokenizer."""
        if self.weights is None:
            return f"vocab-{self.vocab_size}"
        if self.weights.parent == self.data / "models":
            return self.weights.name
        own = sha256_of(self.weights / TOKENIZER)
        for manifest in sorted(self.data.glob(f"{self.corpus}-*/{MANIFEST}")):
            if read_manifest(manifest.parent).tokenizer_sha256 == own:
                # A checkpoint of ours, whose data is there under the name that it began with.
                return manifest.parent.name.removeprefix(f"{self.corpus}-")
        return f"bpe-{own[:8]}"

    def fits(self, manifest: Manifest) -> bool:
        """Whether shards are made from this text, with this tokenizer."""
        text = corpus.fingerprint(self.corpus, data=self.data)
        return (
            (text is None or manifest.source.get("fingerprint") == text)
            and manifest.source.get("validation_every") == self.validation_every
            and (self.weights is None or manifest.tokenizer_sha256 == sha256_of(self.weights / TOKENIZER))
        )


def main() -> None:
    """Prepare once; one sentence if it cannot be."""
    try:
        run()
    except (ShardError, WeightsError) as error:
        sys.exit(f"prepare.py: {error}")
    except KeyboardInterrupt:
        sys.exit("prepare.py: interrupted; finished shards are kept, submit again.")


def run() -> None:
    """Weights, then shards, then a note of both for train.py."""
    data, run_dir = Path(os.environ["DATA_DIR"]), Path(os.environ["RUN_DIR"])
    bucket = DatasetBucket.of_workload(WORKLOAD)
    name = corpus.choose(os.environ.get("CORPUS", ""), data=data)
    init_from = os.environ.get("INIT_FROM") or "gpt2"
    vocab_size = number("VOCAB_SIZE", 50257, VOCAB_SIZES)
    every = number("VALIDATION_EVERY", corpus.VALIDATION_EVERY[name], range(2, 10**6))
    workers = number("PREPARE_WORKERS", len(os.sched_getaffinity(0)), range(1, 1025))
    order = Order(
        data=data,
        corpus=name,
        init_from=init_from,
        weights=find_weights(init_from, data=data, bucket=bucket),
        vocab_size=vocab_size,
        validation_every=every,
        workers=workers,
    )
    # Text of a machine lies on every machine.
    have_shards(order, None if name == "machine" else bucket)
    note = {
        "corpus": name,
        "shards": str(order.folder),
        "init_from": init_from,
        "weights": str(order.weights) if order.weights else None,
    }
    write_whole(run_dir / "data.json", json.dumps(note) + "\n")


def number(name: str, default: int, allowed: range) -> int:
    """A variable that is a whole number.

    Raises:
        ShardError: it is none, or not allowed.
    """
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or int(text) not in allowed:
        raise ShardError(
            f"{name} is {text!r}: give a whole number from {allowed.start} to {allowed.stop - 1}."
        )
    return int(text)


def have_shards(order: Order, bucket: DatasetBucket | None) -> None:
    """Find, take or make the shards; what was made here goes to the bucket."""
    if is_done(order):
        print(f"data: {order.folder} is there")
    elif bucket is None or not take(order, bucket):
        make(order)
    if bucket:
        try:
            bucket.upload_shards(order.folder.name, order.folder, read_manifest(order.folder))
        except BucketError as error:
            print(f"data: not in the bucket, and training goes on without: {error}", file=sys.stderr)


def make(order: Order) -> None:
    """Read the text and write the shards."""
    started = time.monotonic()
    units = corpus.units(order.corpus, data=order.data)
    size = sum(unit.size_bytes for unit in units)
    for unit in units[:8]:
        print(f"data: {unit.size_bytes:>13,} bytes  {unit.name}")
    print(f"data: {size / 1e6:,.1f} MB in {len(units)} parts, {order.workers} processes")
    order.folder.mkdir(parents=True, exist_ok=True)
    tokenizer_file = tokenizer_of(order, units)
    tokenizer = open_tokenizer(tokenizer_file)
    recipe = Recipe(
        folder=order.folder,
        units=units,
        read=corpus.Reader(),
        encoder=Bpe(tokenizer_file),
        vocab_size=tokenizer.get_vocab_size(),
        tokenizer_sha256=sha256_of(tokenizer_file),
        source={
            "corpus": order.corpus,
            "fingerprint": corpus.fingerprint(order.corpus, data=order.data),
            "validation_every": order.validation_every,
            "parts": [{"name": unit.name, "size_bytes": unit.size_bytes} for unit in units],
        },
        validation_every=order.validation_every,
    )
    check_space(recipe)
    manifest = prepare(recipe, workers=order.workers, also=lambda: downloaded(order))
    counts = ", ".join(f"{split} {manifest.tokens(split):,}" for split in manifest.splits)
    print(
        f"data: {order.folder} made in {time.monotonic() - started:.1f} s: vocabulary "
        f"{manifest.vocab_size:,}, tokens: {counts}"
    )


def downloaded(order: Order) -> str:
    """How far the download is, for a line of progress."""
    if order.corpus != "openwebtext":
        return ""
    size = sum(file.stat().st_size for file in corpus.download_folder(order.data).glob("*.p*"))
    return f"; {size / 1e6:,.1f} MB downloaded"


def tokenizer_of(order: Order, units: tuple[Unit, ...]) -> Path:
    """tokenizer.json beside the shards: the weights' own, or one that is trained here, once for a text."""
    file, note = order.folder / TOKENIZER, order.folder / ".tokenizer-of"
    if order.weights:
        shutil.copyfile(order.weights / TOKENIZER, file)
        return file
    made_of = f"{corpus.fingerprint(order.corpus, data=order.data)} {order.vocab_size}\n"
    if not (file.is_file() and note.is_file() and note.read_text(encoding="utf-8") == made_of):
        train_bpe(units, file, vocab_size=order.vocab_size)
        write_whole(note, made_of)
    return file


def check_space(recipe: Recipe) -> None:
    """Say now that a file system is too small, and not in an hour.

    Text becomes about half as many bytes of tokens, compressed text about as many.
    """
    left = [unit for i, unit in enumerate(recipe.units) if finished(recipe, i) is None]
    fetched = sum(u.size_bytes for u in left if isinstance(u, corpus.Download) and not u.file.is_file())
    wanted = sum(unit.size_bytes for unit in left) + fetched
    free = shutil.disk_usage(recipe.folder).free
    if free < wanted:
        raise ShardError(
            f"the data needs about {wanted / 1e9:.1f} GB and {recipe.folder} has {free / 1e9:.1f} GB free: "
            "remove old runs there, or take less text."
        )


if __name__ == "__main__":
    main()
