"""Text -> fairseq's binary data for roberta: what its encoder and fairseq-preprocess write, in one pass.

Called by prepare.sh, once a job. Environment: DATA_DIR; CORPUS (wikitext-103, machine or raw), VOCAB_SIZE
(50257: GPT-2's BPE; another: a BPE trained on the text), PREPARE_WORKERS (all cores), WIKITEXT_URL,
GPT2_BPE_URL, TRAINING_BUCKET.

Writes $DATA_DIR/<corpus>-bpe-<vocab_size>/ (the BPE, dict.txt, *.bin, *.idx, manifest.json), whole or not at
all, and $DATA_DIR/raw/ for what it fetched. Skips what is done, finishes what was interrupted; takes from the
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
    bring_to,
    check_data,
    describe,
    read_manifest,
    take_from,
)
from binary_data import write_manifest as write_manifest_of
from roberta_settings import (
    GPT2_VOCAB_SIZE,
    SPECIAL_SYMBOLS,
    SettingsError,
    choose_corpus,
    data_folder,
    read_settings,
)
from trainkit.data import corpus as texts
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.run.files import write_whole

# Every 20th block (5 %) of a text that has no split of its own is for validation.
VALIDATION_EVERY = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text:
    """A corpus: its splits, and how each is read, from its begin, as often as one likes."""

    sizes: dict[str, int]
    """Bytes of each split; of a text that is split by blocks, about."""
    lines: Callable[[str], Iterator[str]]


def main() -> None:
    """Prepare once; one sentence if it cannot be."""
    try:
        run()
    except (DataError, BucketError, SettingsError) as error:
        sys.exit(f"prepare.py: {error}")
    except KeyboardInterrupt:
        sys.exit("prepare.py: interrupted; what is encoded is kept, submit again.")


def run() -> None:
    """The folder of the corpus and the vocabulary: there, taken from the bucket, or made."""
    settings = read_settings([], os.environ)
    data = Path(os.environ["DATA_DIR"])
    corpus = choose_corpus(settings.corpus, data=data)
    folder = data_folder(data, corpus=corpus, vocab_size=settings.vocab_size)
    wanted = fingerprint(corpus, raw=data / "raw", vocab_size=settings.vocab_size)
    bucket = DatasetBucket.of_workload("roberta")
    manifest = read_manifest(folder)
    if manifest is not None and wanted in {None, manifest.fingerprint}:
        check_data(folder, sums=False)
        print(f"data: {folder} is there")
    elif bucket and take_from(bucket, folder, fits=lambda found: wanted in {None, found.fingerprint}):
        print(f"data: {folder} is taken from {bucket.url(folder.name)}")
        return
    else:
        started = time.monotonic()
        manifest = make(folder, corpus=corpus, vocab_size=settings.vocab_size, wanted=wanted, bucket=bucket)
        print(f"data: {folder} made in {time.monotonic() - started:.1f} s")
    if bucket:
        bring_to(bucket, folder, manifest)


def fingerprint(corpus: str, *, raw: Path, vocab_size: int) -> str | None:
    """Changes when the data would; reads no big file. None: any, for there is no text."""
    if corpus == "wikitext-103":
        text = wikitext.SHA256
    elif corpus == "machine":
        text = texts.fingerprint()
    else:
        found = [f"{f.name} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in sorted(raw.glob("*.txt"))]
        if not found:
            return None
        text = "\n".join(found)
    made_of = [FORMAT, corpus, text, vocab_size, VALIDATION_EVERY]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


def open_text(corpus: str, *, raw: Path, work: Path, bucket: DatasetBucket | None) -> Text:
    """The text of a corpus, fetched if it has to be."""
    if corpus == "wikitext-103":
        archive = wikitext.have_zip(raw, bucket)
        return Text(sizes=wikitext.sizes(archive), lines=lambda split: wikitext.lines(archive, split))
    files = texts.gather(work / "text") if corpus == "machine" else sorted(raw.glob("*.txt"))
    for file in files:
        print(f"data: {file.stat().st_size:>12,} bytes  {file.name}")
    held_back = sum(file.stat().st_size for file in files) // VALIDATION_EVERY
    return Text(
        sizes={"train": held_back * (VALIDATION_EVERY - 1), "valid": held_back},
        lines=lambda split: split_lines(files, split),
    )


def split_lines(files: list[Path], split: str) -> Iterator[str]:
    """Every 20th block of the files for "valid", the others for "train"; an empty line ends a block."""
    for file in files:
        for number, block in enumerate(texts.blocks(texts.lines(file)), start=1):
            if (number % VALIDATION_EVERY == 0) == (split == "valid"):
                yield from block.splitlines(keepends=True)
                yield "\n"


def make(
    folder: Path, *, corpus: str, vocab_size: int, wanted: str | None, bucket: DatasetBucket | None
) -> Manifest:
    """Fill a folder beside, then rename it: whoever looks sees all or nothing."""
    if wanted is None:
        raise DataError(
            f"CORPUS is raw, and {folder.parent / 'raw'} has no *.txt: bring some there (UTF-8, a paragraph "
            "a line)."
        )
    workers = os.environ.get("PREPARE_WORKERS") or str(len(os.sched_getaffinity(0)))
    if not workers.isdecimal() or not int(workers):
        raise DataError(f'PREPARE_WORKERS is "{workers}": give a number of processes.')
    # Of the threads that train a BPE.
    os.environ.setdefault("RAYON_NUM_THREADS", workers)
    raw, work = folder.parent / "raw", folder.with_name(f".{folder.name}.partial")
    if (note := work / "made-of").is_file() and note.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    write_whole(note, wanted)
    # The small files first: what is wrong with them is known at once.
    bpe = line_bpe.gpt2(raw, bucket) if vocab_size == GPT2_VOCAB_SIZE else None
    text = open_text(corpus, raw=raw, work=work, bucket=bucket)
    bpe = bpe or line_bpe.train(work / "bpe", text.lines("train"), vocab_size=vocab_size)
    symbols = bpe.check_dictionary() + SPECIAL_SYMBOLS
    data = work / "data"
    tokens = binarise(text.lines, text.sizes, bpe=bpe, to=data, work=work / "encoding", workers=int(workers))
    if not all(tokens.values()):
        raise DataError(f"the text is too short to train on ({tokens}): bring more to {raw}.")
    # A model is of no use without its BPE.
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
    write_manifest_of(data, manifest)
    publish(data, folder)
    shutil.rmtree(work)
    counts = ", ".join(f"{split} {count:,}" for split, count in tokens.items())
    print(f"data: {symbols:,} symbols, tokens: {counts}")
    return manifest


def publish(data: Path, folder: Path) -> None:
    """Give the data its name; data of another text that has it goes."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    data.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    main()
