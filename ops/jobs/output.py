"""Reads a job's output on the cluster, by offsets: Systems Manager hands over little at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ops.head_node import CommandError, HeadNode

# Below what Systems Manager keeps of a command's output, MAX_OUTPUT_BYTES.
CHUNK_BYTES = 20_000
_MISSING = re.compile("no such file", re.IGNORECASE)


class Output:
    """A job's output file, and how far it was read.

    Attributes:
        path: on the cluster.
        offset: in bytes, counted by what was asked for: bytes that are no text, and the paths of a rehearsal,
            come with other lengths than they have in the file.
    """

    def __init__(self, path: str, head_node: HeadNode) -> None:
        self.path, self.offset = path, 0
        self._head_node = head_node

    def size(self) -> int | None:
        """Its size in bytes; None before it is there. Raises OpsError and botocore's errors."""
        try:
            return int(self._head_node.run("stat", "--format=%s", self.path))
        except CommandError as error:
            if _MISSING.search(str(error)):
                return None
            raise

    def read_on(self) -> Iterator[str]:
        """Yield what came since, in pieces. Raises OpsError and botocore's errors."""
        size = self.size() or 0
        if size < self.offset:
            self.offset = 0  # somebody emptied it
        while self.offset < size:
            count = min(CHUNK_BYTES, size - self.offset)
            text = self._read(self.offset, count)
            self.offset += count
            yield text

    def read_tail(self, lines: int) -> str:
        """Its last lines, after which it counts as read; empty before it is there.

        Args:
            lines: 1 or more.

        Raises OpsError and botocore's errors.
        """
        size = self.size() or 0
        text, start = "", size
        # One line's end more than lines: what is before the first of them may be a part of a line.
        while start > 0 and text.count("\n") <= lines:
            count = min(CHUNK_BYTES, start)
            start -= count
            text = self._read(start, count) + text
        self.offset = size
        return "".join(text.splitlines(keepends=True)[-lines:])

    def _read(self, offset: int, count: int) -> str:
        return self._head_node.run(
            *("dd", f"if={self.path}", "bs=64K", "iflag=skip_bytes,count_bytes"),
            *(f"skip={offset}", f"count={count}", "status=none"),
        )
