"""Lines of logs as a diagnosis shows them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A line that shows a cause, or may show one, with masked keys and tokens."""

    file: str
    line: int
    text: str
    count: int
    """Number of lines like this one."""
