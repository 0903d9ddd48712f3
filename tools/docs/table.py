"""A table of Markdown."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return the lines of a table, without an empty line around them."""
    lines = [" | ".join(heads), *(" | ".join(map(str, row)) for row in rows)]
    first, *others = (f"| {line} |\n" for line in lines)
    return "".join([first, f"|{'---|' * len(heads)}\n", *others])
