"""Named texts of any size, which are searched for causes line by line."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["event", "log"]
MAX_LINE_BYTES = 4096
"""Length of the part of a line that is searched; the rest is ignored."""
_BLOCK_BYTES = 1 << 20


class Stream(Protocol):
    """A source of bytes that can be read once, from beginning to end."""

    def read(self, size: int = -1, /) -> bytes: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Text:
    """One log, or the events of one stack. Its stream is valid until the next text is requested."""

    name: str
    stream: Stream
    is_earlier: bool = False
    """True if what the text reports was over before the last success of the cluster, or of the job."""

    @property
    def kind(self) -> Kind:
        """Kind of the text, by the name that ParallelCluster or the provider gave it (...-stack-events)."""
        return "event" if "stack-events" in self.name else "log"


@dataclass(frozen=True, kw_only=True)
class State:
    """State of the cluster and the job; empty for files."""

    sentences: tuple[str, ...] = ()
    is_good: bool = False
    """True if the job, or the cluster and its jobs, have succeeded."""
    earlier: str = ""
    """Title of what earlier texts show."""


class Evidence(Protocol):
    """A collection of texts that can be read more than once."""

    state: State
    unread: dict[str, str]
    """Sources that could not be read -> the reason, in one line."""

    def texts(self) -> Iterator[Text]:
        """Yield one text after another."""


class Gathered:
    """Texts in memory: tails of logs, a few MB in all."""

    def __init__(self, cluster_name: str = "") -> None:
        self.cluster_name = cluster_name
        self.unread: dict[str, str] = {}
        self.state = State()
        self._contents: dict[str, tuple[bytes, bool]] = {}

    def add(self, name: str, content: str, *, is_earlier: bool = False) -> None:
        """Store a text unless it is empty."""
        if content.strip():
            self._contents[name] = (content.encode(), is_earlier)

    def texts(self) -> Iterator[Text]:
        """Yield the texts in the order in which they were added."""
        for name, (content, is_earlier) in self._contents.items():
            yield Text(name=name, stream=io.BytesIO(content), is_earlier=is_earlier)


def line_blocks(stream: Stream, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[list[bytes]]:
    """Yield the lines of a stream in blocks of some thousand, each line cut to `max_bytes`."""
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
