"""Finds the patterns of the causes in texts of any size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ops.diagnose.causes import Cause, Pattern
from ops.diagnose.texts import Text, line_blocks

_DIGITS = b"0123456789"
# A log has few different lines once digits are removed, so the result for each is kept. The number is limited
# because a log may hold random text.
_MAX_SHAPES = 200_000


@dataclass
class Hit:
    """The first line that matches a pattern, and the number of such lines."""

    cause: str
    pattern: Pattern
    file: str
    line: int
    text: str
    groups: dict[str, str] = field(default_factory=dict)
    count: int = 1


@dataclass(frozen=True)
class _Compiled:
    cause: str
    pattern: Pattern
    has: bytes
    shape: bytes
    match: re.Pattern[bytes]


class Matcher:
    """A search through texts that keeps the first hit of each pattern."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self.hits: dict[tuple[str, Pattern], Hit] = {}
        self.lines = 0
        self._patterns = tuple(
            _Compiled(
                cause.id,
                pattern,
                pattern.has.encode(),
                pattern.has.encode().translate(None, _DIGITS),
                re.compile((pattern.match or re.escape(pattern.has)).encode()),
            )
            for cause in causes
            for pattern in cause.patterns
        )
        self._suspects: dict[bytes, tuple[_Compiled, ...]] = {}

    def read(self, text: Text) -> None:
        """Match every line of a text."""
        before = 0
        for lines in line_blocks(text.stream):
            shapes = [line.translate(None, _DIGITS) for line in lines]
            self._learn(set(shapes))
            for at, shape in enumerate(shapes):
                if suspects := self._suspects[shape]:
                    self._try(suspects, lines[at], text, before + at + 1)
            before += len(lines)
        self.lines += before

    def _learn(self, shapes: set[bytes]) -> None:
        """Record for each new shape which patterns its lines may match."""
        if len(self._suspects) > _MAX_SHAPES:
            self._suspects.clear()
        new = [shape for shape in shapes if shape not in self._suspects]
        self._suspects.update(dict.fromkeys(new, ()))
        joined = b"\n".join(new)
        likely = [each for each in self._patterns if each.shape in joined]
        if likely:
            for shape in new:
                self._suspects[shape] = tuple(each for each in likely if each.shape in shape)

    def _try(self, suspects: tuple[_Compiled, ...], line: bytes, text: Text, number: int) -> None:
        for each in suspects:
            if each.has not in line or text.kind not in each.pattern.where:
                continue
            if not (found := each.match.search(line)):
                continue
            key = (each.cause, each.pattern)
            if hit := self.hits.get(key):
                hit.count += 1
                hit.groups = {**_groups(found), **hit.groups}
                continue
            shown = line.decode(errors="replace").strip()
            self.hits[key] = Hit(each.cause, each.pattern, text.name, number, shown, _groups(found))


def _groups(found: re.Match[bytes]) -> dict[str, str]:
    given: Mapping[str, bytes | None] = found.groupdict()
    return {name: value.decode(errors="replace") for name, value in given.items() if value}
