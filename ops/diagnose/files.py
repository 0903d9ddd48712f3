"""Logs that are stored on this machine: files, folders, archives. No account is asked.

Compressed files and archives (`pcluster export-cluster-logs`) are read without extracting them.
"""

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from ops.diagnose.texts import State, Stream, Text
from ops.usage import UsageError

# Limit of the unpacked size of one file or archive: a crafted archive may unpack to more than any disk holds.
MAX_UNPACKED_BYTES = 4 << 30
# Limit of a header that holds a long name: tarfile reads it into memory whole.
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


class Files:
    """The files and folders that the user named."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Check that each path exists and has a file. Raises UsageError."""
        self.unread: dict[str, str] = {}
        self.state = State()
        self._paths = tuple(paths)
        for path in self._paths:
            if not path.exists():
                raise UsageError(f"There is no file or folder {path}.\n  type:   ls {path.parent}")
            if not (path.is_dir() or path.is_file()):
                raise UsageError(f"{path} is neither a file nor a folder: name a log, a folder or a .tar.gz.")
            if next(_files(path), None) is None:
                raise UsageError(f"{path} has no file to read.\n  type:   ls -lR {path}")

    def texts(self) -> Iterator[Text]:
        """Yield the texts of every file, a folder's sorted by name."""
        for path in self._paths:
            for file in _files(path):
                yield from self._read(file)

    def _read(self, file: Path) -> Iterator[Text]:
        try:
            opened = file.open("rb")
        except OSError as error:
            self._note(str(file), f"cannot be read: {error.strerror}")
            return
        with opened:
            yield from _read_file(opened, str(file), self._note)

    def _note(self, name: str, why: str) -> None:
        self.unread[name] = why


def _files(path: Path) -> Iterator[Path]:
    """Yield regular files only: a pipe would block forever, and a link may lead out of the folder."""
    if path.is_file():
        yield path
        return
    for each in sorted(path.rglob("*")):
        if each.is_file() and not each.is_symlink():
            yield each


class _Member(tarfile.TarInfo):
    """A tar member; headers above the limit are refused."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type in _LONG_HEADERS and self.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError("a header is larger than any file name needs")
        return super()._proc_member(archive)  # type: ignore[misc]


class Bounded:
    """A stream that ends at a limit or at the first broken byte, and reports that once."""

    def __init__(self, stream: Stream, note: Note) -> None:
        self._stream, self._note, self._left = stream, note, MAX_UNPACKED_BYTES

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes, like a file; `size` is required."""
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


def _read_file(file: BinaryIO, name: str, note: NamedNote) -> Iterator[Text]:
    """Yield the texts of one open file: the file itself, decompressed, or the files of an archive.

    Args:
        note: receives the name of each omitted file, and the reason.
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
                # A sparse member may claim any number of zeros without any size on disk.
                if not member.isreg() or member.issparse():
                    note(inside, "is not a regular file")
                    continue
                content = archive.extractfile(member)
                # CloudWatch's exports hold files that are compressed themselves.
                yield from _text(_unpacked(content, partial(note, inside)), inside, note)
    except _BROKEN as error:
        note(name, f"broken: {error}")


def _text(stream: "_Peeked", name: str, note: NamedNote) -> Iterator[Text]:
    if b"\0" in stream.head:
        note(name, "is not text")
    else:
        yield Text(name=name, stream=stream)


def _unpacked(stream: Stream, note: Note) -> "_Peeked":
    raw = _Peeked(Bounded(stream, note))
    if not raw.head.startswith(_GZIP):
        return raw
    return _Peeked(Bounded(cast(Stream, gzip.GzipFile(fileobj=cast(Any, raw))), note))


class _Peeked:
    """A stream whose first bytes can be inspected before it is read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.head = self._rest = stream.read(_HEAD_BYTES)

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes, like a file."""
        if not self._rest:
            return self._stream.read(size)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
