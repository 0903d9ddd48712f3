"""Logs that are stored on this machine: files, folders, archives. No account is asked."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ops.diagnose.archive import read_file
from ops.diagnose.texts import State, Text
from ops.usage import UsageError


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
            yield from read_file(opened, str(file), self._note)

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
