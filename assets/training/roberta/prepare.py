"""Text to fairseq's binary data for roberta: the output of its encoder and fairseq-preprocess, in one pass.

Called by prepare.sh, once a job. Environment: DATA_DIR; CORPUS (wikitext-103; machine: text that exists on
any machine; raw: your own files in DATA_DIR/raw), VOCAB_SIZE (50257: GPT-2's BPE; another: a BPE trained on
the text), PREPARE_WORKERS (all cores), WIKITEXT_URL, GPT2_BPE_URL, TRAINING_BUCKET.

Writes $DATA_DIR/<corpus>-bpe-<vocab_size>/ (the BPE, dict.txt, *.bin, *.idx, manifest.json), whole or not at
all, and $DATA_DIR/raw/ for what it fetched. Skips what is done, finishes what was interrupted; downloads from
the bucket what is there, and uploads what was made here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import line_bpe
import wikitext
from binarise import binarise
from binary_data import (
    ENCODER,
    FORMAT,
    MERGES,
    DataError,
    Manifest,
    check_data,
    describe,
    download,
    read_manifest,
    upload,
    write_manifest,
)
from settings import (
    SPECIAL_SYMBOLS,
    choose_corpus,
    data_folder,
    read_settings,
)
from trainkit.data import machine_text
from trainkit.data.bpe import GPT2_VOCAB_SIZE
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import OWN, PATTERNS, WHOLE, documents_of, fingerprint_of, own_files, pieces_of
from trainkit.data.lifecycle import check_space, main, prepare_workers
from trainkit.run.files import write_whole

# Every 20th document (5 %) of a text without its own split is for validation.
VALIDATION_EVERY = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text:
    """A corpus with its splits, which can be read any number of times."""

    sizes: dict[str, int]
    """Bytes of each split; estimates where the text is split by documents."""
    lines: Callable[[str], Iterator[str]]
    """Reads the lines of a split."""


def run() -> None:
    """Find, download or make the folder of the corpus and the vocabulary."""
    settings = read_settings([])
    data = Path(os.environ["DATA_DIR"])
    corpus = choose_corpus(settings.corpus, data=data)
    folder = data_folder(data, corpus=corpus, vocab_size=settings.vocab_size)
    wanted = fingerprint(corpus, data=data, vocab_size=settings.vocab_size)
    bucket = DatasetBucket.of_workload("roberta")
    manifest = read_manifest(folder)
    if manifest is not None and wanted in {None, manifest.fingerprint}:
        check_data(folder, manifest)
        print(f"data: {folder} is there")
    elif bucket and download(bucket, folder, fits=lambda found: wanted in {None, found.fingerprint}):
        print(f"data: {folder} is taken from {bucket.url(folder.name)}")
        return
    else:
        started = time.monotonic()
        manifest = make(folder, corpus=corpus, vocab_size=settings.vocab_size, wanted=wanted, bucket=bucket)
        print(f"data: {folder} made in {time.monotonic() - started:.1f} s")
    if bucket:
        upload(bucket, folder, manifest)


def fingerprint(corpus: str, *, data: Path, vocab_size: int) -> str | None:
    """Return a checksum that changes with the data; None without text. Reads no big file."""
    if corpus == "wikitext-103":
        text: str | None = wikitext.SHA256
    elif corpus == "machine":
        text = machine_text.fingerprint()
    else:
        text = fingerprint_of(own_files(data))
    if text is None:
        return None
    made_of = [FORMAT, corpus, text, vocab_size, VALIDATION_EVERY]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


def open_text(corpus: str, *, data: Path, work: Path, bucket: DatasetBucket | None) -> Text:
    """Open the text of a corpus; download it if it is missing."""
    if corpus == "wikitext-103":
        archive = wikitext.have_zip(data / OWN, bucket)
        return Text(sizes=wikitext.sizes(archive), lines=lambda split: wikitext.lines(archive, split))
    files = machine_text.gather(work / "text") if corpus == "machine" else own_files(data)
    for file in files:
        print(f"data: {file.stat().st_size:>12,} bytes  {file.name}")
    held_back = sum(file.stat().st_size for file in files) // VALIDATION_EVERY
    return Text(
        sizes={"train": held_back * (VALIDATION_EVERY - 1), "valid": held_back},
        lines=lambda split: split_lines(files, split),
    )


def split_lines(files: list[Path], split: str) -> Iterator[str]:
    """Read every 20th document of a file for "valid", the others for "train"; an empty line ends each."""
    # One process reads the file in order and others encode, so the file is not split.
    for piece in (piece for file in files for piece in pieces_of(file, piece_bytes=WHOLE)):
        for number, (document, _) in enumerate(documents_of(piece), start=1):
            if (number % VALIDATION_EVERY == 0) == (split == "valid"):
                yield from document.splitlines(keepends=True)
                yield "\n"


def make(
    folder: Path, *, corpus: str, vocab_size: int, wanted: str | None, bucket: DatasetBucket | None
) -> Manifest:
    """Fill another folder, then rename it, so that the folder is complete or missing."""
    if wanted is None:
        raise DataError(
            f"CORPUS is raw, and {folder.parent / OWN} has no {PATTERNS}: put some there (in *.txt, a "
            "paragraph a line)."
        )
    workers = prepare_workers()
    # The threads that train a BPE.
    os.environ.setdefault("RAYON_NUM_THREADS", str(workers))
    raw, work = folder.parent / OWN, folder.with_name(f".{folder.name}.partial")
    if (note := work / "made-of").is_file() and note.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    write_whole(note, wanted)
    # The small files first, so that an error in them is reported at once.
    bpe = line_bpe.gpt2(raw, bucket) if vocab_size == GPT2_VOCAB_SIZE else None
    text = open_text(corpus, data=folder.parent, work=work, bucket=bucket)
    encoded = sum(file.stat().st_size for file in work.rglob("*.bin*"))
    check_space(work, sum(text.sizes.values()) - encoded)
    bpe = bpe or line_bpe.train(work / "bpe", text.lines("train"), vocab_size=vocab_size)
    symbols = bpe.check_dictionary() + SPECIAL_SYMBOLS
    data = work / "data"
    tokens = binarise(text.lines, text.sizes, bpe=bpe, to=data, work=work / "encoding", workers=workers)
    if not all(tokens.values()):
        raise DataError(f"the text is too short to train on ({tokens}): bring more to {raw}.")
    # A model is useless without its BPE.
    for name in (ENCODER, MERGES):
        shutil.copyfile(bpe.folder / name, data / name)
    manifest = Manifest(
        fingerprint=wanted,
        corpus=corpus,
        vocab_size=vocab_size,
        symbols=symbols,
        tokens=tokens,
        files=describe(data),
    )
    write_manifest(data, manifest)
    publish(data, folder)
    shutil.rmtree(work)
    counts = ", ".join(f"{split} {count:,}" for split, count in tokens.items())
    print(f"data: {symbols:,} symbols, tokens: {counts}")
    return manifest


def publish(data: Path, folder: Path) -> None:
    """Give the data its name, and remove data of another text that has it."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    data.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    main(run, DataError)
