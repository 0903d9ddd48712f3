"""What is read for causes: named texts, line by line, however long."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["event", "log"]
MAX_LINE_BYTES = 4096
"""What is looked at of a line; the rest is passed over."""
_BLOCK_BYTES = 1 << 20


class Stream(Protocol):
    """What a text is read from, once, from its beginning to its end."""

    def read(self, size: int = -1, /) -> bytes: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Text:
    """One log, or the events of one stack. Its stream is good until the next text is asked for."""

    name: str
    stream: Stream

    @property
    def kind(self) -> Kind:
        """By its name, as ParallelCluster and the provider give it: ...-stack-events, stack-events.json."""
        return "event" if "stack-events" in self.name else "log"


class Evidence(Protocol):
    """All that there is. It can be gone through more than once."""

    silent: dict[str, str]
    """Sources that gave nothing, and why, in a line."""

    def texts(self) -> Iterator[Text]:
        """One after another."""


class Gathered:
    """Texts in memory: tails of logs, a few MB in all."""

    def __init__(self) -> None:
        self.silent: dict[str, str] = {}
        self._contents: dict[str, bytes] = {}

    def add(self, name: str, content: str) -> None:
        """Take a text; an empty one is none."""
        if content.strip():
            self._contents[name] = content.encode()

    def texts(self) -> Iterator[Text]:
        """In the order in which they were taken."""
        for name, content in self._contents.items():
            yield Text(name=name, stream=io.BytesIO(content))


def line_blocks(stream: Stream, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[list[bytes]]:
    """The lines of a stream, some thousand at a time, each cut to `max_bytes`."""
    rest = b""
    while data := stream.read(_BLOCK_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[:max_bytes]
        if lines:
            yield _cut(lines, max_bytes)
    if rest:
        yield [rest]


def _cut(lines: list[bytes], max_bytes: int) -> list[bytes]:
    if max(map(len, lines)) <= max_bytes:
        return lines
    return [line[:max_bytes] for line in lines]
