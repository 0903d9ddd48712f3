"""Shared file systems: Lustre, EFS. `stat` is ended when a file system does not answer."""

from __future__ import annotations

from collections.abc import Iterator

from command import output_of
from textfile import Sample


def storage_samples(folders: list[str]) -> Iterator[Sample]:
    """Yield size and free space of each folder's file system, as `stat --file-system` counts them."""
    for folder in folders:
        counted = output_of("timeout", "10", "stat", "--file-system", "--format=%S %b %a %c %d", folder)
        block, size, free, files, files_free = (int(each) for each in counted.split())
        labels = {"folder": folder}
        yield Sample("storage_size_bytes", size * block, labels)
        yield Sample("storage_free_bytes", free * block, labels)
        yield Sample("storage_files", files, labels)
        yield Sample("storage_files_free", files_free, labels)
