"""Series of any length in constant memory: a bucket has the minimum, mean and maximum of each series.

Only the standard library, and Python 3.9: the head node's python3 runs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

# Number of buckets that are kept while rows are added.
_KEPT = 2048


@dataclass
class Span:
    """Minimum, maximum and sum of one series in one bucket."""

    low: float
    high: float
    total: float
    count: int

    def add(self, other: Span) -> None:
        """Add the values of another span."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.total, self.count = self.total + other.total, self.count + other.count

    @property
    def mean(self) -> float:
        """Mean of the values of a span."""
        return self.total / self.count


@dataclass
class Bucket:
    """Consecutive rows: the place of the last row, and the span of each series."""

    at: Mapping[str, float]
    spans: dict[str, Span] = field(default_factory=dict)
    rows: int = 0

    def take(self, other: Bucket) -> None:
        """Add the rows of the bucket that follows, which is not changed."""
        self.at = other.at
        self.rows += other.rows
        for name, span in other.spans.items():
            if name in self.spans:
                self.spans[name].add(span)
            else:
                self.spans[name] = replace(span)


class Buckets:
    """Rows in buckets; when there are too many, pairs of buckets are merged."""

    def __init__(self) -> None:
        self._buckets: list[Bucket] = []
        self._rows_a_bucket = 1

    def add(self, at: Mapping[str, float], values: Mapping[str, float]) -> None:
        """Add a row: its places on the axes, and its finite values by series."""
        if not self._buckets or self._buckets[-1].rows >= self._rows_a_bucket:
            if len(self._buckets) >= _KEPT:
                self._buckets = list(_grouped(self._buckets, 2))
                self._rows_a_bucket *= 2
            self._buckets.append(Bucket(at=at))
        self._buckets[-1].take(Bucket(at=at, spans=_spans(values), rows=1))

    def add_to_last(self, values: Mapping[str, float]) -> None:
        """Add more series to the place of the last row; nothing before the first row."""
        if self._buckets:
            last = self._buckets[-1]
            last.take(Bucket(at=last.at, spans=_spans(values)))

    def at_most(self, limit: int) -> list[Bucket]:
        """Return all rows in at most `limit` buckets, which have equally many rows except the last."""
        return list(_grouped(self._buckets, max(1, math.ceil(len(self._buckets) / limit))))


def _spans(values: Mapping[str, float]) -> dict[str, Span]:
    return {name: Span(value, value, value, 1) for name, value in values.items() if math.isfinite(value)}


def _grouped(buckets: Sequence[Bucket], size: int) -> Iterator[Bucket]:
    for start in range(0, len(buckets), size):
        group = Bucket(at=buckets[start].at)
        for each in buckets[start : start + size]:
            group.take(each)
        yield group


class Median:
    """Median in constant memory: values are counted by their first five digits."""

    def __init__(self) -> None:
        self._counts: dict[float, int] = {}

    def add(self, value: float) -> None:
        """Count a value, unless it is not finite."""
        if math.isfinite(value):
            rounded = float(f"{value:.5g}")
            self._counts[rounded] = self._counts.get(rounded, 0) + 1

    def value(self) -> float | None:
        """Return the median to five digits, or None without a value."""
        half, seen = sum(self._counts.values()) / 2, 0
        for value in sorted(self._counts):
            seen += self._counts[value]
            if seen >= half:
                return value
        return None
