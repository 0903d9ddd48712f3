"""Text -> tokens for gpt2: a byte-level BPE tokenizer trained on the text, and uint16 token files.

Called by prepare.sh. Reads DATA_DIR and VOCAB_SIZE from the environment, and text from
$DATA_DIR/raw/*.txt if there is any (else from the machine, see corpus.py). Writes, whole or not at
all, $DATA_DIR/vocab-<VOCAB_SIZE>/: train.bin, val.bin, tokenizer.json, meta.json. Does nothing when
they are there and the text is the same.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import corpus

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_TEXT = "<|endoftext|>"
# The 256 bytes and the end of text have to fit; a token is two bytes in the files.
VOCAB_SIZES = range(300, 65_537)
# Every 20th block (5 %) is for validation.
VAL_EVERY = 20
BATCH = 256


def main() -> None:
    """Prepare once."""
    data = Path(os.environ["DATA_DIR"])
    vocab_size = read_vocab_size(os.environ.get("VOCAB_SIZE", "50257"))
    folder = data / f"vocab-{vocab_size}"
    wanted = corpus.fingerprint(data / "raw")
    if is_done(folder, wanted):
        print(f"data: {folder} is there")
        return
    started = time.monotonic()
    sources = corpus.collect(data / "raw")
    if not sources:
        sys.exit(f"prepare.py: no text found.\n  Put *.txt files into {data / 'raw'}.")
    for source in sources:
        print(f"data: {source.size_bytes:>12,} bytes  {source.name}")
    write(folder, sources=sources, vocab_size=vocab_size, fingerprint=wanted)
    print(f"data: {folder} made in {time.monotonic() - started:.1f} s")


def read_vocab_size(text: str) -> int:
    """A size that the files can hold; exits with what is allowed otherwise."""
    if not text.isdecimal() or int(text) not in VOCAB_SIZES:
        allowed = f"{VOCAB_SIZES.start} to {VOCAB_SIZES.stop - 1}"
        sys.exit(f"prepare.py: VOCAB_SIZE is {text!r}.\n  Give a whole number from {allowed}.")
    return int(text)


def is_done(folder: Path, fingerprint: str) -> bool:
    """Whether `folder` was made from the same text."""
    meta = folder / "meta.json"
    return meta.is_file() and json.loads(meta.read_text(encoding="utf-8"))["fingerprint"] == fingerprint


def write(folder: Path, *, sources: list[corpus.Source], vocab_size: int, fingerprint: str) -> None:
    """Fill a folder beside, then rename it: whoever looks sees all or nothing."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    tokenizer = train_tokenizer(sources, vocab_size=vocab_size)
    tokenizer.save(str(partial / "tokenizer.json"))
    counts = write_tokens(partial, sources=sources, tokenizer=tokenizer)
    meta = {
        "fingerprint": fingerprint,
        "vocab_size": tokenizer.get_vocab_size(),
        "sources": [{"name": source.name, "size_bytes": source.size_bytes} for source in sources],
        "tokens": counts,
    }
    (partial / "meta.json").write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    print(
        f"data: vocabulary {meta['vocab_size']:,}, tokens: "
        + ", ".join(f"{k} {n:,}" for k, n in counts.items())
    )


def all_blocks(sources: Iterable[corpus.Source]) -> Iterator[str]:
    """The blocks of all sources; no block spans two."""
    for source in sources:
        yield from corpus.blocks(source.lines())


def train_tokenizer(sources: list[corpus.Source], *, vocab_size: int) -> Tokenizer:
    """GPT-2's kind of tokenizer, with a vocabulary of our own text."""
    from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415 (the rest of this file needs no package)

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        all_blocks(sources), vocab_size=vocab_size, special_tokens=[END_OF_TEXT], show_progress=False
    )
    tokenizer: Tokenizer = bpe._tokenizer
    return tokenizer


def write_tokens(folder: Path, *, sources: list[corpus.Source], tokenizer: Tokenizer) -> dict[str, int]:
    """Write train.bin and val.bin; the number of tokens of each."""
    import numpy as np  # noqa: PLC0415

    end = tokenizer.token_to_id(END_OF_TEXT)
    counts = {"train": 0, "val": 0}
    with (folder / "train.bin").open("wb") as train, (folder / "val.bin").open("wb") as val:
        files = {"train": train, "val": val}
        for numbered in batched(enumerate(all_blocks(sources)), BATCH):
            encodings = tokenizer.encode_batch([text for _, text in numbered])
            for (i, _), encoding in zip(numbered, encodings, strict=True):
                split = "val" if i % VAL_EVERY == VAL_EVERY - 1 else "train"
                ids = np.array([*encoding.ids, end], dtype=np.uint16)
                files[split].write(ids.tobytes())
                counts[split] += len(ids)
    return counts


def batched(items: Iterator[tuple[int, str]], size: int) -> Iterator[list[tuple[int, str]]]:
    """Lists of `size` items, the last one shorter (itertools.batched is Python 3.12)."""
    while batch := list(itertools.islice(items, size)):
        yield batch


if __name__ == "__main__":
    main()
