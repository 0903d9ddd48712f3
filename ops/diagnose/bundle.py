"""Writes the texts as one masked .tar.gz that only its owner can read, and never over another file."""

import io
import os
import tarfile
from collections import deque
from pathlib import Path, PurePosixPath

from ops.diagnose.texts import Evidence, Text, line_blocks
from ops.masking import mask_bytes
from ops.usage import UsageError

# Of each text its end is kept, and of each line its beginning.
_MAX_TEXT_BYTES, _MAX_LINE_BYTES = 16 << 20, 64 << 10


def check_bundle(file: Path) -> None:
    """Refuse a path that cannot be written, before AWS is asked. Raises UsageError."""
    if not file.name.endswith(".tar.gz"):
        raise UsageError(f"--bundle {file}: the name of a bundle ends with .tar.gz.")
    if file.exists() or file.is_symlink():
        raise UsageError(f"--bundle {file} already exists and is not overwritten: give another name.")
    if not file.parent.is_dir():
        raise UsageError(f"--bundle {file}: there is no folder {file.parent}.\n  type:   mkdir {file.parent}")


def write_bundle(file: Path, evidence: Evidence, diagnosis: str) -> None:
    """Write the bundle, readable by its owner alone; remove it if that fails or is interrupted.

    Args:
        diagnosis: the findings, as JSON.

    Raises:
        UsageError: the file exists already, or cannot be written.
    """
    check_bundle(file)
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(f"--bundle {file} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(opened, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
            _add(archive, "diagnosis.json", mask_bytes(diagnosis.encode()))
            taken = {"diagnosis.json", "unread.txt"}
            for text in evidence.texts():
                _add(archive, _name(text, taken), _content(text))
            unread = "".join(f"{name}: {why}\n" for name, why in evidence.unread.items())
            _add(archive, "unread.txt", mask_bytes(unread.encode()))
    except BaseException:
        file.unlink()
        raise


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(f"trainctl-diagnose/{name}")
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, io.BytesIO(content))


def _content(text: Text) -> bytes:
    """Return the end of a text, masked."""
    blocks: deque[bytes] = deque()
    size, is_cut = 0, False
    for lines in line_blocks(text.stream, max_bytes=_MAX_LINE_BYTES):
        blocks.append(b"\n".join(lines) + b"\n")
        size += len(blocks[-1])
        while size > _MAX_TEXT_BYTES and len(blocks) > 1:
            size -= len(blocks.popleft())
            is_cut = True
    head = b"(cut: its last part)\n" if is_cut else b""
    return head + mask_bytes(b"".join(blocks))


def _name(text: Text, taken: set[str]) -> str:
    """Return a relative path that stays within the folder it is unpacked to and that no other text has."""
    parts = [part for part in PurePosixPath(text.name).parts if part not in ("/", "..", ".")]
    name = "/".join(parts) or "text"
    number = 1
    while name in taken:
        number += 1
        name = f"{'/'.join(parts)}.{number}"
    taken.add(name)
    return name
