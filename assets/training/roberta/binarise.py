"""Encoding of a text into dict.txt and each split's .bin and .idx, byte for byte as fairseq-preprocess."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from binary_data import DICTIONARY, DataError
from encoding import Coder, begin
from fairseq_format import read_numbering
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
        to: a folder for the files. A file gets its name when it is complete.
        work: a folder for temporary files.

    Raises:
        DataError: fairseq cannot read the dictionary, or a process died; encoded files remain.
    """
    from trainkit.data.mapped import write_index  # noqa: PLC0415 (only this needs a package)

    numbering = read_numbering(bpe.dictionary)
    saved = to / DICTIONARY
    if saved.is_file() and saved.read_text(encoding="utf-8") != numbering.dictionary:
        # Existing files are encoded with another dictionary.
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(to)
    for folder in (to, work):
        folder.mkdir(exist_ok=True)
    write_whole(saved, numbering.dictionary)
    coder, tokens = Coder(bpe.bpe, numbering.indices), {}
    # Start new processes, since a forked copy would lose the tokenizer's threads.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=begin, initargs=(coder,))
    try:
        for name, size in sizes.items():
            split = Split(binary=to / f"{name}.bin", work=work, token_bytes=numbering.indices.itemsize)
            tokens[name] = encode_split(lines(name), split, pool=pool, workers=workers, total_bytes=size)
            index = split.binary.with_suffix(".idx")
            write_index(index, split.read_sizes(), dtype=numbering.dtype, documents=False)
            sync(index)
    except BrokenProcessPool as error:
        raise DataError(
            "a process that encoded was killed, perhaps because memory ran out: submit again, what is "
            f"encoded is kept; fewer at a time than {workers}: PREPARE_WORKERS={max(1, workers // 2)}."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
    return tokens
