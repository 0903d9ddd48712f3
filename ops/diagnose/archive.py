"""Reads compressed files and archives, as `pcluster export-cluster-logs` makes them. Nothing is extracted."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from ops.diagnose.texts import Stream, Text

# Of one file or archive, unpacked: an archive may hold more than any disk.
MAX_UNPACKED_BYTES = 4 << 30
# Of the header that holds a long name; tarfile reads it into memory whole.
_MAX_HEADER_BYTES = 1 << 20
_GZIP, _TAR, _TAR_AT, _HEAD_BYTES = b"\x1f\x8b", b"ustar", 257, 512
_LONG_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_BROKEN = (OSError, EOFError, zlib.error, tarfile.TarError)
Note = Callable[[str], None]
NamedNote = Callable[[str, str], None]


class _Member(tarfile.TarInfo):
    """A member whose headers are of a sane size."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type in _LONG_HEADERS and self.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError("a header of a size that no log's name has")
        return super()._proc_member(archive)  # type: ignore[misc]


class Bounded:
    """A stream that ends at a limit, and where it is broken; it says so once."""

    def __init__(self, stream: Stream, note: Note) -> None:
        self._stream, self._note, self._left = stream, note, MAX_UNPACKED_BYTES

    def read(self, size: int = -1, /) -> bytes:
        """As a file does; size has to be given."""
        if self._left <= 0:
            return b""
        try:
            data = self._stream.read(size)
        except _BROKEN as error:
            self._left = 0
            self._note(f"broken from here on: {error}")
            return b""
        self._left -= len(data)
        if self._left <= 0:
            self._note(f"cut at {MAX_UNPACKED_BYTES >> 20} MiB")
        return data


def read_file(file: BinaryIO, name: str, note: NamedNote) -> Iterator[Text]:
    """The texts of one open file: itself, unpacked where it is compressed, or the files of an archive.

    Args:
        note: takes the name of what is left out, and why.
    """
    stream = _unpacked(file, partial(note, name))
    if stream.head[_TAR_AT:].startswith(_TAR):
        yield from _members(stream, name, note)
    else:
        yield from _text(stream, name, note)


def _members(stream: Stream, name: str, note: NamedNote) -> Iterator[Text]:
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive:  # type: ignore[call-overload]
            for member in archive:
                if member.isdir():
                    continue
                inside = f"{name}:{member.name}"
                # A sparse member of no size on the disk may claim any number of zeros.
                if not member.isreg() or member.issparse():
                    note(inside, "is no file")
                    continue
                content = archive.extractfile(member)
                # CloudWatch's own exports hold files that are compressed once more.
                yield from _text(_unpacked(content, partial(note, inside)), inside, note)
    except _BROKEN as error:
        note(name, f"broken: {error}")


def _text(stream: _Peeked, name: str, note: NamedNote) -> Iterator[Text]:
    if b"\0" in stream.head:
        note(name, "is no text")
    else:
        yield Text(name=name, stream=stream)


def _unpacked(stream: Stream, note: Note) -> _Peeked:
    raw = _Peeked(Bounded(stream, note))
    if not raw.head.startswith(_GZIP):
        return raw
    return _Peeked(Bounded(cast(Stream, gzip.GzipFile(fileobj=cast(Any, raw))), note))


class _Peeked:
    """A stream whose first bytes are known before it is read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.head = self._rest = stream.read(_HEAD_BYTES)

    def read(self, size: int = -1, /) -> bytes:
        """As a file does."""
        if not self._rest:
            return self._stream.read(size)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
