"""Files that are either complete or missing, even after a node was lost."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Flush a file, or the list of names of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(file: Path, text: str) -> None:
    """Write a small file under another name, and rename it when it is complete."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    sync(partial)
    partial.replace(file)
    sync(file.parent)
