"""Text of others on a terminal: what a person sees, and nothing that the terminal obeys."""

from __future__ import annotations

import re

# C0 and C1: ESC and CSI begin the sequences that move the cursor, set titles and colours.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Put a ? in the place of every control character, a line's end and a tab included."""
    return _CONTROL.sub("?", text)
