"""Namespaces of one container, as Enroot makes them: a separate root file system, and one mapped user.

The caller remains the same process, so Slurm's signals reach the program that replaces it. The module uses
only the standard library and Linux system calls.
"""

import ctypes
import os
import platform
from collections.abc import Sequence
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC = 0x1, 0x2, 0x4, 0x20, 0x1000, 0x4000
_MS_SLAVE = 0x80000
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
# Mounts that Enroot makes in every container (its conf/mounts).
_SYSTEM = ("/proc", "/sys", "/dev")
_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")

_libc = ctypes.CDLL(None, use_errno=True)


def enter(root: Path, *, mounts: Sequence[tuple[str, str, str]], is_writable: bool, workdir: str) -> None:
    """Make `root` the root of this process, which has one thread.

    Files of all other owners, root included, appear as nobody's, since a user may map only their own id.

    Args:
        root: unpacked file system, owned by the user.
        mounts: source, target and flags ("ro" among them) of more folders or files.
        is_writable: False for a read-only root.
        workdir: working directory in it; "" for its root.

    Raises:
        OSError: the kernel refused one of the steps; the message names it.
    """
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _mount(None, "/", None, _MS_REC | _MS_SLAVE)
    _mount(str(root), str(root), None, _MS_BIND | _MS_REC)
    for folder in _SYSTEM:
        _bind(folder, root, folder)
    _mount("tmpfs", str(_inside(root, "/tmp")), "tmpfs", _MS_NOSUID | _MS_NODEV)  # noqa: S108 - in the container
    for file in _FILES:
        if Path(file).exists():
            _bind(file, root, file)
    for source, target, flags in mounts:
        _bind(source, root, target)
        if "ro" in flags.split("+"):
            _mount(None, str(_inside(root, target)), None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY)
    if not is_writable:
        _mount(None, str(root), None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY)
    os.chdir(root)
    # The old root is stacked on the new one, and then detached (pivot_root(2), notes).
    _call("syscall", _PIVOT_ROOT[platform.machine()], b".", b".")
    _call("umount2", b".", _MNT_DETACH)
    os.chdir(workdir or "/")


def _inside(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _bind(source: str, root: Path, target: str) -> None:
    """Mount a folder or file of the node at a path in the container, which is created if it is missing."""
    place = _inside(root, target)
    if Path(source).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        # A link would lead to the node's own file.
        if place.is_symlink():
            place.unlink()
        place.touch()
    _mount(source, str(place), None, _MS_BIND | _MS_REC)


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    words = [None if each is None else os.fsencode(each) for each in (source, target, kind)]
    _call("mount", *words, ctypes.c_ulong(flags), None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")
