"""Text, tokens and Megatron's data files of gpt2-megatron, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR, ACCELERATOR_KIND; CORPUS (wikipedia;
machine: text that lies on this machine; raw: DATA_DIR/raw/*.jsonl), WIKI (enwiki), WIKIPEDIA_DUMP (a date,
or latest), WIKIPEDIA_URL (a mirror), VOCAB_SIZE (50257: GPT-2's; another: trained on the text),
GPT2_BPE_URL, INIT_FROM, PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY, PREPARE_HERE,
TRAINING_BUCKET.

Writes $DATA_DIR/<wiki>-<date>/ (parts, text), $DATA_DIR/gpt2/, $DATA_DIR/models/,
$DATA_DIR/<corpus>-vocab-<n>/ (token shards, megatron/) and $RUN_DIR/data.json: what train.py reads. Skips
what is done, finishes what was interrupted; takes shards from the bucket if they are there, and brings
there what was made here.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import published
from articles import json_lines
from indexed import make_indexed
from tokens import FILES, GPT2_VOCAB_SIZE, Bpe, gpt2, train_bpe
from trainkit.data import corpus as texts
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.ordered import is_done, take
from trainkit.data.prepare_tokens import Recipe, Unit, prepare
from trainkit.data.shards import Manifest, ShardError, read_manifest, sha256_of
from trainkit.run.files import write_whole
from wikipedia import choose_dump, have_text, read_dump

WORKLOAD = "gpt2-megatron"
CORPORA = ("wikipedia", "machine", "raw")
# Of how many documents one is for validation: enough of a large text, and enough of a small one.
VALIDATION_EVERY = {"wikipedia": 200, "machine": 20, "raw": 200}
# One shard of 30 MB, and a minute's work of one core.
PIECE_BYTES = 2**26


@dataclass(frozen=True, kw_only=True)
class Piece(Unit):
    """A part of a file of JSON lines, or a text file in blocks."""

    file: Path
    start: int
    end: int


class Documents:
    """Reads a piece; goes to other processes."""

    def __call__(self, unit: Piece) -> Iterator[tuple[str, int]]:
        """Each document, and the bytes read for it."""
        if unit.file.suffix == ".jsonl":
            return json_lines(unit.file, start=unit.start, end=unit.end)
        return ((block, len(block.encode())) for block in texts.blocks(texts.lines(unit.file)))


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be prepared."""

    data: Path
    corpus: str
    name: str
    """The corpus, and of Wikipedia the dump."""
    vocab_size: int
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """Where the shards are, or will be."""
        return self.data / f"{self.name}-vocab-{self.vocab_size}"

    def fits(self, manifest: Manifest) -> bool:
        """Whether shards are made of this text."""
        return bool(manifest.source.get("made_of") == made_of(self))


def main() -> None:
    """Prepare once; one sentence if it cannot be."""
    try:
        run()
    except (ShardError, BucketError) as error:
        sys.exit(f"prepare.py: {error}")
    except KeyboardInterrupt:
        sys.exit("prepare.py: interrupted; what is done is kept, submit again.")


def run() -> None:
    """Text, shards, Megatron's files and weights, then a note of them for train.py."""
    bucket = DatasetBucket.of_workload(WORKLOAD)
    order = read_order()
    published.check(os.environ.get("INIT_FROM") or "scratch")
    end_of_text = have_shards(order, bucket)
    make_indexed(order.folder, end_of_text=end_of_text)
    if os.environ.get("INIT_FROM") == published.NAME:
        published.have(order.data, bucket)
    write_whole(Path(os.environ["RUN_DIR"]) / "data.json", json.dumps({"shards": str(order.folder)}) + "\n")


def read_order() -> Order:
    """What the variables ask for.

    Raises:
        ShardError: a value that makes no sense.
    """
    data = Path(os.environ["DATA_DIR"])
    name = corpus = os.environ.get("CORPUS") or "wikipedia"
    if corpus not in CORPORA:
        raise ShardError(f"CORPUS is {corpus!r}; allowed: {', '.join(CORPORA)}.")
    if corpus == "wikipedia":
        wiki = os.environ.get("WIKI") or "enwiki"
        name = f"{wiki}-{choose_dump(data, wiki=wiki, date=os.environ.get('WIKIPEDIA_DUMP') or 'latest')}"
    return Order(
        data=data,
        corpus=corpus,
        name=name,
        vocab_size=number("VOCAB_SIZE", GPT2_VOCAB_SIZE, range(300, 2**31)),
        validation_every=number("VALIDATION_EVERY", VALIDATION_EVERY[corpus], range(2, 10**6)),
        workers=number("PREPARE_WORKERS", len(os.sched_getaffinity(0)), range(1, 1025)),
    )


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


def have_shards(order: Order, bucket: DatasetBucket | None) -> int:
    """Find, take or make the shards; the id of the end of text. What was made here goes to the bucket."""
    if is_done(order):
        print(f"data: {order.folder} is there")
    elif bucket is None or not take(order, bucket):
        make(order, bucket)
    manifest = read_manifest(order.folder)
    # Text of a machine lies on every machine.
    if bucket and order.corpus != "machine":
        try:
            bucket.upload_shards(order.folder.name, order.folder, manifest)
        except BucketError as error:
            print(f"data: not in the bucket, and training goes on without: {error}", file=sys.stderr)
    return int(manifest.source["end_of_text"])


def made_of(order: Order) -> str:
    """Changes when the shards would; reads no big file."""
    if order.corpus == "machine":
        text = texts.fingerprint()
    elif order.corpus == "wikipedia":
        text = order.name
    else:
        text = "\n".join(f"{f.name} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in raw_files(order.data))
    return hashlib.sha256(json.dumps([text, order.vocab_size, order.validation_every]).encode()).hexdigest()


def raw_files(data: Path) -> list[Path]:
    """One's own text."""
    files = sorted((data / "raw").glob("*.jsonl"))
    if not files:
        raise ShardError(
            f'CORPUS is raw, and {data / "raw"} has no *.jsonl (a JSON object with a "text" a line).'
        )
    return files


def make(order: Order, bucket: DatasetBucket | None) -> None:
    """Read the text and write the shards."""
    refuse_on_gpus(order)
    started = time.monotonic()
    # The small files first: what is wrong with them is known at once.
    bpe = gpt2(order.data / "gpt2", bucket) if order.vocab_size == GPT2_VOCAB_SIZE else None
    units = [unit for file in text_files(order) for unit in pieces_of(file)]
    print(f"data: {sum(unit.size_bytes for unit in units) / 1e6:,.1f} MB of text in {len(units)} pieces")
    order.folder.mkdir(parents=True, exist_ok=True)
    bpe = bpe or train_bpe(
        order.folder / "vocabulary",
        (text for unit in units for text, _ in Documents()(unit)),
        vocab_size=order.vocab_size,
        made_of=made_of(order),
    )
    manifest = prepare(
        Recipe(
            folder=order.folder,
            units=tuple(units),
            read=Documents(),
            encoder=bpe,
            vocab_size=bpe.vocab_size,
            tokenizer_sha256=_sum(bpe),
            source={"corpus": order.name, "made_of": made_of(order), "end_of_text": bpe.end_of_text},
            validation_every=order.validation_every,
        ),
        workers=order.workers,
    )
    counts = ", ".join(f"{split} {manifest.tokens(split):,}" for split in manifest.splits)
    print(f"data: {order.folder} made in {time.monotonic() - started:.1f} s, tokens: {counts}")


def refuse_on_gpus(order: Order) -> None:
    """Hours of GPUs that wait are not what anybody wants.

    Raises:
        ShardError: this node has accelerators, and the text is a large one.
    """
    if order.corpus != "wikipedia" or os.environ.get("PREPARE_HERE") == "yes":
        return
    if os.environ.get("ACCELERATOR_KIND", "none") != "none":
        raise ShardError(
            f"{order.folder} is not prepared, and GPUs would wait for it for hours: prepare it on CPUs first "
            f"(PREPARE_ONLY=1 sbatch --partition cpu --nodes 1 job.slurm {WORKLOAD}), or here: "
            "PREPARE_HERE=yes."
        )


def text_files(order: Order) -> list[Path]:
    """Files of the corpus's text, made if they have to be."""
    if order.corpus == "machine":
        return texts.gather(order.data / "machine-text")
    if order.corpus == "raw":
        return raw_files(order.data)
    wiki, _, date = order.name.rpartition("-")
    dump = read_dump(order.data, wiki=wiki, date=date)
    have_text(dump, workers=order.workers)
    return dump.texts()


def pieces_of(file: Path, *, piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    """Parts that one process reads each: as many as the size of a .jsonl asks for."""
    found = file.stat()
    size, made_of = found.st_size, f"{file.name} {found.st_size} {found.st_mtime_ns}"
    step = piece_bytes if file.suffix == ".jsonl" else max(1, size)
    return [
        Piece(
            name=f"{file.name}, from byte {start}",
            size_bytes=min(step, size - start),
            fingerprint=hashlib.sha256(f"{made_of} {start} {step}".encode()).hexdigest(),
            file=file,
            start=start,
            end=min(start + step, size),
        )
        for start in range(0, size, step)
    ]


def _sum(bpe: Bpe) -> str:
    sums = "".join(sha256_of(bpe.folder / name) for name in FILES)
    return hashlib.sha256(sums.encode()).hexdigest()


if __name__ == "__main__":
    main()
