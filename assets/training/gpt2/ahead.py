"""Batches of the next step, read by a thread while the accelerator computes this one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any


class Ahead:
    """Reader of the batches of each step by the position of its first sequence, at most one step ahead.

    The batches depend only on the position, so a run reads the same with and without this reader.
    """

    def __init__(self, read: Callable[[int], Any], *, sequences: int, is_on: bool) -> None:
        """Begin without any batch read ahead.

        Args:
            read: reads the batches of the step whose first sequence has a position.
            sequences: number of sequences of a step.
            is_on: False to read each step only when it is requested.
        """
        self._read, self._sequences = read, sequences
        self._thread = ThreadPoolExecutor(1, "batches") if is_on else None
        self._next: tuple[int, Future[Any]] | None = None

    def batches(self, first: int) -> Any:
        """Return the batches of the step that begins at a position, and begin to read the next step's."""
        if not self._thread:
            return self._read(first)
        is_read = self._next is not None and self._next[0] == first
        found = self._next[1].result() if self._next and is_read else self._read(first)
        following = first + self._sequences
        self._next = following, self._thread.submit(self._read, following)
        return found

    def __enter__(self) -> Ahead:
        """Return the reader."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop batches that were read but not requested."""
        if self._thread:
            self._thread.shutdown(cancel_futures=True)
