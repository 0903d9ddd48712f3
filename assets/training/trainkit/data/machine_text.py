"""Real English that exists on any machine: licences and Python's documentation.

It needs only the standard library. It reads documentation strings from the modules' source, and imports no
module.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainkit.run.files import write_whole

LICENCES = Path("/usr/share/common-licenses")
# Tests, third-party packages and generated tables have no useful documentation.
SKIPPED = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})


def fingerprint(*, licences: Path = LICENCES) -> str:
    """Return a checksum that changes with the text, without reading the text."""
    made_of = [sys.version, *(f"{file.name} {file.stat().st_size}" for file in licence_files(licences))]
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest()


def gather(folder: Path, *, licences: Path = LICENCES, stdlib: Path | None = None) -> list[Path]:
    """Write the text into files of `folder`, once per version; return the files with text."""
    note = folder / "gathered-from"
    made_of = f"{fingerprint(licences=licences)}\n"
    files = [folder / "licences.jsonl", folder / "documentation.jsonl"]
    if not (
        note.is_file() and note.read_text(encoding="utf-8") == made_of and all(f.is_file() for f in files)
    ):
        folder.mkdir(parents=True, exist_ok=True)
        texts = (file.read_text(encoding="utf-8", errors="replace") for file in licence_files(licences))
        write_whole(files[0], _lines(texts))
        write_whole(files[1], _lines(documentation(stdlib or Path(sysconfig.get_path("stdlib")))))
        write_whole(note, made_of)
    return [file for file in files if file.stat().st_size]


def _lines(texts: Iterable[str]) -> str:
    """Return a line of JSON for each text."""
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


def licence_files(folder: Path) -> list[Path]:
    """List the licences in Debian's folder by name, without links."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.is_file() and not file.is_symlink())


def documentation(stdlib: Path) -> Iterator[str]:
    """Read the documentation strings of each module that has any, in the order of the paths."""
    for file in sorted(stdlib.rglob("*.py")):
        if SKIPPED.isdisjoint(file.relative_to(stdlib).parts):
            text = "\n\n".join(docstrings(file.read_bytes()))
            if text:
                yield text


def docstrings(source: bytes) -> list[str]:
    """Return the documentation strings of one module, outermost first; none if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented))
    return [text for text in texts if text]
