"""Finds the patterns of the causes in texts of any size."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from ops.diagnose.causes import Cause, Pattern
from ops.diagnose.texts import Text, line_blocks
from ops.diagnose.unknown import UnknownLines, weight_of

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
    is_own_sentence: bool = False
    """True if one of our scripts ended a job with this line."""


@dataclass(frozen=True)
class _Compiled:
    cause: str
    pattern: Pattern
    is_own_sentence: bool
    has: bytes
    shape: bytes
    match: str


class Matcher:
    """A search through texts that keeps the first hit of each pattern."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self.hits: dict[tuple[str, Pattern], Hit] = {}
        self.lines = 0
        self._patterns = tuple(
            _Compiled(
                cause.id,
                pattern,
                cause.is_own_sentence,
                pattern.has.encode(),
                pattern.has.encode().translate(None, _DIGITS),
                pattern.match or re.escape(pattern.has),
            )
            for cause in sorted(causes, key=lambda cause: cause.is_own_sentence)
            for pattern in cause.patterns
        )
        self._suspects: dict[bytes, tuple[_Compiled, ...]] = {}
        self.unknown = UnknownLines()
        self._alarming: set[bytes] = set()

    def read(self, text: Text) -> None:
        """Match every line of a text."""
        before = 0
        for lines in line_blocks(text.stream):
            shapes = [line.translate(None, _DIGITS) for line in lines]
            self._learn(set(shapes))
            for at, shape in enumerate(shapes):
                suspects = self._suspects[shape]
                is_explained = bool(suspects) and self._try(suspects, lines[at], text, before + at + 1)
                if not is_explained and shape in self._alarming:
                    self.unknown.add(lines[at], text.name, before + at + 1)
            before += len(lines)
        self.lines += before

    def _learn(self, shapes: set[bytes]) -> None:
        """Record for each new shape which patterns its lines may match."""
        if len(self._suspects) > _MAX_SHAPES:
            self._suspects.clear()
            self._alarming.clear()
        new = [shape for shape in shapes if shape not in self._suspects]
        self._suspects.update(dict.fromkeys(new, ()))
        self._alarming.update(shape for shape in new if weight_of(shape))
        joined = b"\n".join(new)
        likely = [each for each in self._patterns if each.shape in joined]
        if likely:
            for shape in new:
                self._suspects[shape] = tuple(each for each in likely if each.shape in shape)

    def _try(self, suspects: tuple[_Compiled, ...], line: bytes, text: Text, number: int) -> bool:
        """Record the hits of a line, and return True if there are any."""
        named: list[Hit] = []
        for each in suspects:
            if each.has not in line or text.kind not in each.pattern.where:
                continue
            if not (found := _expression(each.match).search(line)):
                continue
            if each.is_own_sentence and named:
                for hit in named:
                    if not hit.is_own_sentence:
                        hit.file, hit.line, hit.text = text.name, number, _shown(line)
                        hit.is_own_sentence = True
                continue
            key = (each.cause, each.pattern)
            if key in self.hits:
                self.hits[key].count += 1
                self.hits[key].groups = {**_groups(found), **self.hits[key].groups}
            else:
                self.hits[key] = Hit(
                    each.cause, each.pattern, text.name, number, _shown(line), _groups(found)
                )
                self.hits[key].is_own_sentence = each.is_own_sentence
            named.append(self.hits[key])
        return bool(named)


@cache
def _expression(match: str) -> re.Pattern[bytes]:
    """Compile an expression when a line needs it: a log needs few of them, and `re` itself keeps only 512."""
    return re.compile(match.encode())


def _shown(line: bytes) -> str:
    return line.decode(errors="replace").strip()


def _groups(found: re.Match[bytes]) -> dict[str, str]:
    given: Mapping[str, bytes | None] = found.groupdict()
    return {name: value.decode(errors="replace") for name, value in given.items() if value}
