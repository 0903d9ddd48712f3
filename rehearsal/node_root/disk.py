"""Disks of throw-away machines: a folder over the base system that takes what is written, for a time."""

from __future__ import annotations

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

from rehearsal.node_root.base import FOLDER

DISKS = FOLDER / "disks"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is at a path; two are equal if nobody could tell them apart."""

    kind: str
    mode: str
    owner: tuple[int, int]
    content: str
    """SHA-256 of a file, target of a link, else nothing."""
    changed_ns: int
    """Of a folder 0, as files come and go in it; of a link, too, as one is made anew to be changed."""


@dataclass(frozen=True, kw_only=True)
class Disk:
    """One machine's disk; a machine that is made from another's disk has that one's beneath it.

    Args:
        folder: its own.
        beneath: the topmost first; the base system is the last.
    """

    folder: Path
    beneath: tuple[Path, ...]

    @property
    def written(self) -> Path:
        """What the machine wrote; where layers do not work, all that is on its disk."""
        return self.folder / "written"

    @property
    def layers(self) -> tuple[Path, ...]:
        """What a machine that is made from this disk has beneath its own."""
        return (self.written, *self.beneath) if self.beneath else (self.written,)

    def arguments(self) -> list[str]:
        """ROOT, LOWER, UPPER and WORK of enter.sh, from FOLDER: mount misreads some letters of paths."""
        lower = ":".join(str(layer.relative_to(FOLDER)) for layer in self.beneath)
        own = [str((self.folder / name).relative_to(FOLDER)) for name in ("root", "written", "work")]
        return [own[0], lower, own[1], own[2]]

    def write(self, path: str, content: str, *, mode: int = 0o644) -> None:
        """Put a file on the disk while no machine runs on it."""
        target = self.written / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        target.chmod(mode)

    def entries(self, *except_below: str) -> dict[str, Entry]:
        """All that was written, by absolute path; without what is below some folders."""
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
def new_disk(beneath: tuple[Path, ...], *, layered: bool | None = None) -> Iterator[Disk]:
    """A disk over others, until the end of the block.

    Args:
        beneath: layers of another disk, or the base system alone.
        layered: whether to mount it over them; otherwise it is a copy. Default: if that works here.
    """
    remove_orphans()
    folder = _folder()
    disk = Disk(folder=folder, beneath=beneath)
    try:
        for name in ("root", "written", "work"):
            (folder / name).mkdir(parents=True)
        if not (_layers_work() if layered is None else layered):
            for layer in reversed(beneath):
                subprocess.run(["cp", "-a", "--reflink=auto", f"{layer}/.", disk.written], check=True)
            disk = Disk(folder=folder, beneath=())
        yield disk
    finally:
        shutil.rmtree(folder)


def _folder() -> Path:
    """One that says by its name whose it is."""
    me = psutil.Process()
    return DISKS / f"{me.pid}-{me.create_time():.2f}-{secrets.token_hex(4)}"


def remove_orphans() -> None:
    """Remove the disks of processes that were killed; their mounts ended with them."""
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
    """Whether this file system can be mounted in layers; that of many containers cannot."""
    trial = _folder()
    for name in ("root", "written", "work", "beneath"):
        (trial / name).mkdir(parents=True)
    mount = "mount -t overlay -o lowerdir=beneath,upperdir=written,workdir=work overlay root"
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount], cwd=trial, capture_output=True, check=False
    )
    shutil.rmtree(trial)
    return tried.returncode == 0
