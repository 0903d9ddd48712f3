"""The text that gpt2 trains on: the user's own, or real English that lies on any machine.

Only the standard library. The documentation strings of Python's standard library are read from its
source; nothing of it is imported.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LICENCES = Path("/usr/share/common-licenses")
# Not documentation to read: tests, other people's packages, generated tables.
SKIPPED = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})
# A block is one example of the split into training and validation text.
BLOCK_CHARACTERS = 4000


@dataclass(frozen=True)
class Source:
    """Text of one origin: files, or texts already read."""

    name: str
    size_bytes: int
    files: tuple[Path, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)

    def lines(self) -> Iterator[str]:
        """Every line with its end; one file at a time is open."""
        for text in self.texts:
            yield from text.splitlines(keepends=True)
            yield "\n"
        for file in self.files:
            with file.open(encoding="utf-8", errors="replace") as opened:
                yield from opened


def collect(raw: Path, *, licences: Path = LICENCES, stdlib: Path | None = None) -> list[Source]:
    """*.txt in `raw` if there is any; else the machine's licences and Python's documentation strings."""
    own = sorted(raw.glob("*.txt"))
    if own:
        return [Source(file.name, file.stat().st_size, files=(file,)) for file in own]
    files = tuple(licence_files(licences))
    texts = tuple(documentation(stdlib or standard_library()))
    version = ".".join(map(str, sys.version_info[:3]))
    sources = [
        Source(f"{len(files)} licences in {licences}", sum(f.stat().st_size for f in files), files=files),
        Source(
            f"documentation strings of Python {version}'s standard library ({len(texts)} modules)",
            sum(len(text.encode()) for text in texts),
            texts=texts,
        ),
    ]
    return [source for source in sources if source.size_bytes]


def fingerprint(raw: Path, *, licences: Path = LICENCES) -> str:
    """Changes when the text would: cheap, since it reads no text."""
    own = [f"{f.name} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in sorted(raw.glob("*.txt"))]
    machine = [sys.version, *(f"{f.name} {f.stat().st_size}" for f in licence_files(licences))]
    return hashlib.sha256("\n".join(own or machine).encode()).hexdigest()


def licence_files(folder: Path) -> list[Path]:
    """The licences in Debian's folder, by name; links to another of them left out."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.is_file() and not file.is_symlink())


def standard_library() -> Path:
    """Where the source of this Python's standard library lies."""
    return Path(sysconfig.get_path("stdlib"))


def documentation(stdlib: Path) -> Iterator[str]:
    """The documentation strings of each module that has any, in the order of the paths."""
    for file in sorted(stdlib.rglob("*.py")):
        if SKIPPED.isdisjoint(file.relative_to(stdlib).parts):
            text = "\n\n".join(docstrings(file.read_bytes()))
            if text:
                yield text


def docstrings(source: bytes) -> list[str]:
    """The documentation strings of one module, outermost first; none if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented))
    return [text for text in texts if text]


def blocks(lines: Iterable[str], *, characters: int = BLOCK_CHARACTERS) -> Iterator[str]:
    """Cut at the first empty line after `characters`, or at twice that; the blocks together are the text."""
    block: list[str] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= 2 * characters or (size >= characters and not line.strip()):
            yield "".join(block)
            block, size = [], 0
    if block:
        yield "".join(block)
