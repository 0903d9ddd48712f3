"""Makes foreign text safe for a terminal: no control sequence reaches it."""

import re

# C0 and C1: ESC and CSI begin the sequences that move the cursor, set titles and colours.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Replace every control character with a ?, including line ends and tabs."""
    return _CONTROL.sub("?", text)
