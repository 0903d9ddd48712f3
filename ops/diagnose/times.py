"""Times at the beginning of log lines and of the folders of saved logs, in UTC."""

import datetime
import re

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d")


def is_before(text: str, time: datetime.datetime | None) -> bool:
    """Return True if the text begins with a time before this one."""
    found = _TIME.match(text)
    if not found or time is None:
        return False
    return found[0].replace(":", "-") < f"{time.astimezone(datetime.UTC):%Y-%m-%dT%H-%M-%S}"


def split(text: str, time: datetime.datetime | None) -> tuple[str, str]:
    """Split a log at the first line that has this time or a later one."""
    lines = text.splitlines(keepends=True)
    if time is None:
        return "", text
    at = next(
        (at for at, line in enumerate(lines) if _TIME.match(line) and not is_before(line, time)), len(lines)
    )
    return "".join(lines[:at]), "".join(lines[at:])


def shown(time: datetime.datetime) -> str:
    """Return a time as a diagnosis shows it."""
    return f"{time.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"
