"""Aligns rows in columns for a terminal. Pure."""

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> Iterator[str]:
    """Yield one line per row; each column but the last has the width of its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (indent + "  ".join(cells)).rstrip()
