"""Reads a job's output on the cluster, by offsets: Systems Manager hands over little at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ops.account.head_node import CommandError, HeadNode
from ops.jobs.lookup import is_unknown_job
from ops.jobs.slurm import Job, parse_job

# Below what Systems Manager keeps of a command's output, MAX_OUTPUT_BYTES.
CHUNK_BYTES = 20_000
_MISSING = re.compile("no such file", re.IGNORECASE)
# Of a look at a job: somebody waits, and the next look asks the same.
_LOOK_S = 30


@dataclass(frozen=True, kw_only=True)
class Look:
    """A job, and what came in its output since the look before."""

    job: Job | None
    """None where Slurm has forgotten it."""
    text: str
    is_behind: bool
    """True where there is more to read already."""


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
            return int(self._head_node.run("stat", "--format=%s", self.path, reads_only=True))
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

    def look(self, job_id: str) -> Look:
        """Ask for the job and for what came since, in one command. Raises OpsError and botocore's errors."""
        answer = self._head_node.run_script(
            *("read-on.sh", job_id, self.path, str(self.offset), str(CHUNK_BYTES)),
            limit_s=_LOOK_S,
            reads_only=True,
        )
        code, said, size, text = answer.split("\n", 3)
        if code != "0" and not is_unknown_job(said):
            raise CommandError(f"scontrol: {said}")
        if size != "-":
            self.offset = self.offset if self.offset <= int(size) else 0  # somebody emptied it
            self.offset = min(self.offset + CHUNK_BYTES, int(size))
        return Look(
            job=parse_job(said) if code == "0" else None,
            text=text,
            is_behind=size != "-" and self.offset < int(size),
        )

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
            reads_only=True,
        )
