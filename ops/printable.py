"""Text for a terminal: aligned columns, and no control sequence of foreign text."""

import re
from collections.abc import Iterator, Sequence

# C0 and C1: ESC and CSI begin the sequences that move the cursor, set titles and colours.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Replace every control character with a ?, including line ends and tabs."""
    return _CONTROL.sub("?", text)


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> Iterator[str]:
    """Yield one line per row; each column but the last has the width of its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (indent + "  ".join(cells)).rstrip()
