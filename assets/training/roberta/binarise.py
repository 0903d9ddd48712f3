"""Encoding of a text into dict.txt and each split's .bin and .idx, byte for byte as fairseq-preprocess."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from binary_data import DICTIONARY
from line_bpe import FairseqBpe
from split_files import Split, encode_split
from trainkit.run.files import sync, write_whole


def binarise(
    lines: Callable[[str], Iterator[str]],
    sizes: Mapping[str, int],
    *,
    bpe: FairseqBpe,
    to: Path,
    work: Path,
    workers: int,
) -> dict[str, int]:
    """Encode the lines of each split and return their tokens; the work of an earlier start is kept.

    Args:
        sizes: bytes of each split, for the lines about the progress.
        to: a folder for the files, each of which has its name when it is whole.
        work: a folder for files that are needed until then.

    Raises:
        DataError: fairseq cannot read the dictionary.
    """
    # The import takes seconds, and errors before it need not wait for it.
    from fairseq_format import read_numbering, write_index  # noqa: PLC0415

    numbering = read_numbering(bpe.dictionary)
    saved = to / DICTIONARY
    if saved.is_file() and saved.read_text(encoding="utf-8") != numbering.dictionary:
        # What is encoded has the indices of another dictionary.
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(to)
    for folder in (to, work):
        folder.mkdir(exist_ok=True)
    write_whole(saved, numbering.dictionary)
    tokenizer, tokens = bpe.tokenizer(), {}
    for name, size in sizes.items():
        split = Split(binary=to / f"{name}.bin", work=work)
        tokens[name] = encode_split(
            lines(name),
            split,
            tokenizer=tokenizer,
            indices=numbering.indices,
            workers=workers,
            total_bytes=size,
        )
        index = split.binary.with_suffix(".idx")
        write_index(index, split.read_sizes(), indices=numbering.indices)
        sync(index)
    return tokens
