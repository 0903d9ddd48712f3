"""Disks of throw-away machines: a temporary folder over the base system that takes all writes."""

import hashlib
import secrets
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from rehearsal.containers.base import FOLDER

DISKS = FOLDER / "disks"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The file, folder or link at a path; entries with equal content and time are equal."""

    kind: str
    mode: str
    owner: tuple[int, int]
    content: str
    """SHA-256 of a file, or target of a link; otherwise empty."""
    changed_ns: int
    """Time of the last change of a file; 0 for folders and links, whose times do not matter."""


@dataclass(frozen=True, kw_only=True)
class Disk:
    """The disk of one machine, over the disk of another machine if it is made from that.

    Args:
        folder: folder of this disk.
        lower_layers: lower layers, the topmost first; the base system is the last.
    """

    folder: Path
    lower_layers: tuple[Path, ...]

    @property
    def written(self) -> Path:
        """Folder of the machine's writes; without overlay mounts it has the whole disk."""
        return self.folder / "written"

    @property
    def layers(self) -> tuple[Path, ...]:
        """Lower layers of a machine that is made from this disk."""
        return (self.written, *self.lower_layers) if self.lower_layers else (self.written,)

    def arguments(self) -> list[str]:
        """Return ROOT, LOWER, UPPER and WORK of enter.sh, below FOLDER: mount misreads some characters."""
        lower = ":".join(str(layer.relative_to(FOLDER)) for layer in self.lower_layers)
        own = [str((self.folder / name).relative_to(FOLDER)) for name in ("root", "written", "work")]
        return [own[0], lower, own[1], own[2]]

    def write(self, path: str, content: str, *, mode: int = 0o644) -> None:
        """Write a file to the disk while no machine runs on it."""
        target = self.written / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        target.chmod(mode)

    def entries(self, *except_below: str) -> dict[str, Entry]:
        """Return all written entries by absolute path, except those below some folders."""
        found = {}
        for path in sorted(self.written.rglob("*")):
            name = f"/{path.relative_to(self.written)}"
            if not name.startswith(except_below):
                found[name] = _entry(path)
        return found


def _entry(path: Path) -> Entry:
    status = path.lstat()
    content = ""
    if stat.S_ISREG(status.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    return Entry(
        kind=stat.filemode(status.st_mode)[0],
        mode=stat.filemode(status.st_mode),
        owner=(status.st_uid, status.st_gid),
        content=content,
        changed_ns=status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0,
    )


@contextmanager
def new_disk(lower_layers: tuple[Path, ...], *, layered: bool | None = None) -> Iterator[Disk]:
    """Create a disk over others, and remove it at the end of the block.

    Args:
        lower_layers: layers of another disk, or only the base system.
        layered: True to mount it over them, False to copy them. Default: a mount if that works here.
    """
    remove_orphans()
    folder = _folder()
    disk = Disk(folder=folder, lower_layers=lower_layers)
    try:
        for name in ("root", "written", "work"):
            (folder / name).mkdir(parents=True)
        if not (_layers_work() if layered is None else layered):
            for layer in reversed(lower_layers):
                subprocess.run(["cp", "-a", "--reflink=auto", f"{layer}/.", disk.written], check=True)
            disk = Disk(folder=folder, lower_layers=())
        yield disk
    finally:
        shutil.rmtree(folder)


def _folder() -> Path:
    """Return a new folder, whose name identifies this process."""
    me = psutil.Process()
    return DISKS / f"{me.pid}-{me.create_time():.2f}-{secrets.token_hex(4)}"


def remove_orphans() -> None:
    """Remove the disks of killed processes; their mounts ended with them."""
    DISKS.mkdir(parents=True, exist_ok=True)
    for folder in DISKS.iterdir():
        pid, born, _ = folder.name.split("-")
        try:
            alive = f"{psutil.Process(int(pid)).create_time():.2f}" == born
        except psutil.NoSuchProcess:
            alive = False
        if not alive:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _layers_work() -> bool:
    """Return True if overlay mounts work on this file system; they do not in many containers."""
    trial = _folder()
    for name in ("root", "written", "work", "lower_layers"):
        (trial / name).mkdir(parents=True)
    mount = "mount -t overlay -o lowerdir=lower_layers,upperdir=written,workdir=work overlay root"
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount], cwd=trial, capture_output=True, check=False
    )
    shutil.rmtree(trial)
    return tried.returncode == 0
