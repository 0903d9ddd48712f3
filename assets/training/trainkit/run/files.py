"""Files that are either complete or missing, even after a node was lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def sync(path: Path) -> None:
    """Flush a file, or the list of names of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def whole_file(file: Path) -> Iterator[BinaryIO]:
    """Open a file for writing under another name, and rename it at the end of the block."""
    partial = file.with_name(f".{file.name}.partial")
    with partial.open("wb") as stream:
        yield stream
    sync(partial)
    partial.replace(file)
    sync(file.parent)


def write_whole(file: Path, text: str) -> None:
    """Write a small file under another name, and rename it when it is complete."""
    with whole_file(file) as stream:
        stream.write(text.encode())
