"""Immutable settings of a cluster, which the library itself would change: mounts and permissions boundary.

Another file system under /home or /fsx hides the data of people and jobs in the former one, and the
library's own check of such a change ends in an AttributeError while nodes run.

A change of the permissions boundary could not be rolled back: the provider's role may set only the boundary
of its own deploy, and may not remove one, so the rollback of the cluster's stack would end in
UPDATE_ROLLBACK_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SETTINGS = ("FsxLustreSettings", "EfsSettings", "EbsSettings", "RaidSettings")
_NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of an immutable setting."""

    key: str
    """Section of the cluster config that has the setting."""
    setting: str
    """Folder of a mount, or `permissions boundary`."""
    old: str
    new: str
    flags: tuple[str, ...]
    """Context flags that set its value."""

    def __str__(self) -> str:
        return f"{self.setting}: {self.old} -> {self.new}"


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """List the immutable settings that an update would change: mounts by folder, then the boundary."""
    return [*_mounts(before, after), *_boundary(before, after)]


def _mounts(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    old, new = _mounted(before), _mounted(after)
    flags = ("home", "fsx_id", "efs_id")
    for folder in sorted(old.keys() | new.keys()):
        was, will = old.get(folder, _NOTHING), new.get(folder, _NOTHING)
        if was != will:
            yield Change(key="SharedStorage", setting=folder, old=was, new=will, flags=flags)


def _boundary(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    was, will = (
        str((each.get("Iam") or {}).get("PermissionsBoundary") or _NOTHING) for each in (before, after)
    )
    if was != will:
        flags = ("permissions_boundary",)
        yield Change(key="Iam", setting="permissions boundary", old=was, new=will, flags=flags)


def _mounted(config: dict[str, Any]) -> dict[str, str]:
    """Return the file system's id (or the storage's name) of each mounted folder."""
    return {str(each["MountDir"]): _file_system(each) for each in config.get("SharedStorage") or []}


def _file_system(storage: dict[str, Any]) -> str:
    settings: dict[str, Any] = next((storage[key] for key in _SETTINGS if storage.get(key)), {})
    return str(settings.get("FileSystemId") or settings.get("VolumeId") or storage["Name"])
