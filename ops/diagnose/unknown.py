"""Ranks the lines that look like failures and that no known cause explains."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ops.masking import mask

_SHOWN = 5
_MOST_SHAPES = 20_000
LEAST = 30
"""Weight from which on a line may be a failure."""
LOUD = 80
"""Weight from which on a line shows how a program ended, so that it precedes causes that are consequences."""
# Words of a line and their weight; the first match counts. An exception or a crash ends a program, a refusal
# often does; a line that is marked as information or as a warning seldom does. A stack event that reports
# progress is no failure, whatever the name of its resource. Some exceptions only report that another process
# ended, or that somebody ended this one.
_WEIGHTS = (
    (r"NCCL (?:INFO|DEBUG)|\b(?:INFO|DEBUG|TRACE)\b|\b(?:no|0) (?:errors?|failures?)\b", 10),
    (r"[Ii]gnor(?:e|ed|ing)\b|failed, optional", 10),
    (r"(?<!ROLLBACK)_(?:COMPLETE|IN_PROGRESS)[ |]+(?:AWS|Custom|Alexa)::", 10),
    (
        r"\b(?:ChildFailedError|DistBackendError|CalledProcessError|SignalException|KeyboardInterrupt"
        r"|BrokenPipeError|SystemExit)\b",
        55,
    ),
    (r"^(?:\[?\w*\d*\]?: ?){0,2}(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b(?:: |$)", 90),
    (r"terminate called after|[Ss]egmentation fault|core dumped|[Bb]us error|[Pp]anic: ", 85),
    (r"\bFATAL\b|\bfatal(?: error)?:|\bCRITICAL\b|[Aa]ssertion .{0,200}failed|\bAborted\b", 80),
    (r"\bWARN(?:ING)?\b|[Ww]arning:|[Rr]etry", 20),
    (r"\bERROR\b|\b[Ee]rror: |^(?:\w*\d*: ?)?\[E\d* |_FAILED\b", 60),
    (r"[Pp]ermission denied|[Rr]efused|[Ff]ailed|\b[Ff]ailure|[Cc]annot|[Cc]ould not|[Uu]nable to", 50),
    (r"[Tt]imed out|[Kk]illed|[Nn]o such file|[Nn]ot found|[Ii]nvalid|[Dd]enied|[Uu]nexpected", 50),
)
_WORDS = tuple((re.compile(words.encode()), weight) for words, weight in _WEIGHTS)
# What differs between lines of one kind: paths, quoted texts, addresses and numbers of any base.
_VARYING = re.compile(rb"""(?:/[\w.+-]+)+|'[^']*'|"[^"]*"|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\b\w*\d[\w.-]*""")


@dataclass(frozen=True, kw_only=True)
class EvidenceLine:
    """A line that shows a cause, or may show one, with masked keys and tokens."""

    file: str
    line: int
    text: str
    count: int
    """Number of lines like this one."""


@dataclass
class _Seen:
    weight: int
    file: str
    line: int
    text: bytes
    count: int = 1


def weight_of(line: bytes) -> int:
    """Return how much a line, with its digits or without, looks like a failure: from 0 to 90."""
    return next((weight for words, weight in _WORDS if words.search(line)), 0)


class UnknownLines:
    """Lines that look like failures, one of each shape."""

    def __init__(self) -> None:
        self._seen: dict[bytes, _Seen] = {}

    def add(self, line: bytes, file: str, number: int) -> None:
        """Count a line, if it looks like a failure."""
        if (weight := weight_of(line)) < LEAST:
            return
        shape = _VARYING.sub(b"?", line.strip())
        if seen := self._seen.get(shape):
            seen.count += 1
        elif len(self._seen) < _MOST_SHAPES:
            self._seen[shape] = _Seen(weight, file, number, line)

    def ranked(self, *, least: int = LEAST, of: str = "") -> Iterable[EvidenceLine]:
        """Yield the lines that look most like the failure: by weight, then the rarest, then the earliest.

        Args:
            least: weight from which on a line counts.
            of: prefix of the names of the texts whose lines count.
        """
        wanted = (seen for seen in self._seen.values() if seen.weight >= least and seen.file.startswith(of))
        # sorted keeps the order of lines that are equal.
        for seen in sorted(wanted, key=lambda seen: (-seen.weight, seen.count))[:_SHOWN]:
            text = mask(seen.text.decode(errors="replace").strip())
            yield EvidenceLine(file=seen.file, line=seen.line, text=text, count=seen.count)
