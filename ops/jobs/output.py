"""Reads a job's output on the cluster in parts, because Systems Manager limits the size of each answer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ops.account.head_node import CommandError, HeadNode
from ops.jobs.lookup import first_job, job_options
from ops.jobs.slurm import Job

# Below MAX_OUTPUT_BYTES, which Systems Manager keeps of a command's output.
CHUNK_BYTES = 20_000
_MISSING = re.compile("no such file", re.IGNORECASE)
# Short, since a user waits, and the next look repeats the question.
_LOOK_S = 30


@dataclass(frozen=True, kw_only=True)
class Look:
    """A job, and the part of its output that is new since the last look."""

    job: Job | None
    """None if Slurm has forgotten the job."""
    text: str
    is_behind: bool
    """True if the file has more output already."""


class Output:
    """A job's output file, and the offset to which it was read.

    Attributes:
        path: path on the cluster.
        offset: number of requested bytes. The length of the received text may differ: for bytes that
            are not text, and for the paths of a rehearsal.
    """

    def __init__(self, path: str, head_node: HeadNode) -> None:
        self.path, self.offset = path, 0
        self._head_node = head_node

    def size(self) -> int | None:
        """Return the size in bytes, None before the file exists. Raises OpsError and botocore's errors."""
        try:
            return int(self._head_node.run("stat", "--format=%s", self.path, reads_only=True))
        except CommandError as error:
            if _MISSING.search(str(error)):
                return None
            raise

    def read_on(self) -> Iterator[str]:
        """Yield the new output in parts. Raises OpsError and botocore's errors."""
        size = self.size() or 0
        if size < self.offset:
            self.offset = 0  # the file was truncated
        while self.offset < size:
            count = min(CHUNK_BYTES, size - self.offset)
            text = self._read(self.offset, count)
            self.offset += count
            yield text

    def look(self, job_id: str) -> Look:
        """Read the job and its new output in one command. Raises OpsError and botocore's errors."""
        part = ("--", self.path, str(self.offset), str(CHUNK_BYTES))
        rows, _, answer = self._head_node.ask_slurm("squeue", *job_options(job_id), *part, limit_s=_LOOK_S)
        size, _, text = answer.partition("\n")
        if size != "-":
            self.offset = self.offset if self.offset <= int(size) else 0  # the file was truncated
            self.offset = min(self.offset + CHUNK_BYTES, int(size))
        return Look(
            job=first_job(rows, job_id),
            text=text,
            is_behind=size != "-" and self.offset < int(size),
        )

    def read_tail(self, lines: int) -> str:
        """Return the last lines, and move the offset to the end; empty before the file exists.

        Args:
            lines: number of lines, 1 or more.

        Raises OpsError and botocore's errors.
        """
        size = self.size() or 0
        text, start = "", size
        # One more line end than lines is needed, because the text may begin within a line.
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
