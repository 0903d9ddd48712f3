"""What is mounted where: kept for a cluster's life, though the library would change it on a stopped fleet.

Another file system under /home or /fsx hides what people and jobs left in the former one, and the
library's own check of such a change ends in an AttributeError while nodes run.
"""

from __future__ import annotations

from typing import Any

_SETTINGS = ("FsxLustreSettings", "EfsSettings", "EbsSettings", "RaidSettings")


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Say what an update would mount elsewhere, or no more: one line a folder; empty when nothing."""
    old, new = _mounted(before), _mounted(after)
    return [
        f"{folder}: {old.get(folder, 'nothing')} -> {new.get(folder, 'nothing')}"
        for folder in sorted(old.keys() | new.keys())
        if old.get(folder) != new.get(folder)
    ]


def _mounted(config: dict[str, Any]) -> dict[str, str]:
    """Folder to file system, by id."""
    return {str(each["MountDir"]): _file_system(each) for each in config.get("SharedStorage") or []}


def _file_system(storage: dict[str, Any]) -> str:
    settings: dict[str, Any] = next((storage[key] for key in _SETTINGS if storage.get(key)), {})
    return str(settings.get("FileSystemId") or settings.get("VolumeId") or storage["Name"])
