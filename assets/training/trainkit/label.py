"""Label of a checkpoint, its file checkpoint.json: what the checkpoint holds, and whether that is there."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainkit import sums
from trainkit.sums import LABEL

# File of a checkpoint with other bytes, or that ranks could not load, with the reason; no start takes it.
DAMAGED = "damaged"


def fault_of(checkpoint: Path) -> str | None:
    """Return the reason why a checkpoint is incomplete; None if all files have their sizes.

    Checkpoints of older versions have no list of files and are used unchecked.
    """
    try:
        sizes = _label(checkpoint).get("files", {})
    except FileNotFoundError:
        return f"{LABEL} is missing"
    except (OSError, ValueError) as error:
        return f"{LABEL} is damaged: {error}"
    if (checkpoint / DAMAGED).is_file():
        return (checkpoint / DAMAGED).read_text(encoding="utf-8").strip()
    return _fault_of_sizes(checkpoint, sizes)


def _fault_of_sizes(checkpoint: Path, sizes: dict[str, int]) -> str | None:
    for name, size in sizes.items():
        try:
            found = (checkpoint / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return f"{name} is missing"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
        if found != size:
            return f"{name} has {found:,} bytes instead of {size:,}"
    return None


def noted(checkpoint: Path) -> dict[str, Any]:
    """Return the label of a checkpoint: its step, the run that made it, its files; none if it is damaged.

    `settings` are those of the start that wrote it, and `seconds` are what writing took; older versions wrote
    neither.
    """
    try:
        return _label(checkpoint)
    except (OSError, ValueError):
        return {}


def content_of(written: Path) -> dict[str, Any]:
    """Return sizes and sums of the files of a checkpoint that has no label yet; removes the ranks' notes."""
    own = sums.collect_sums(written)
    files = sorted(path for path in written.rglob("*") if path.is_file())
    sizes = {path.relative_to(written).as_posix(): path.stat().st_size for path in files}
    return {"files": sizes, "sums": own}


def sum_of_label(label: Mapping[str, Any]) -> str:
    """Return the CRC-32 of a label's content, which the file has, too."""
    return f"{zlib.crc32(json.dumps(label).encode()):08x}"


def _label(checkpoint: Path) -> dict[str, Any]:
    """Read the label of a checkpoint. Raises OSError, and ValueError if it is damaged."""
    label = json.loads((checkpoint / LABEL).read_text(encoding="utf-8"))
    sizes = label.get("files", {}) if isinstance(label, dict) else None
    if not isinstance(sizes, dict) or not all(isinstance(size, int) for size in sizes.values()):
        raise ValueError("it is not a list of files")
    if label.pop("sum", None) not in {None, sum_of_label(label)}:
        raise ValueError("it has other bytes than when it was saved")
    return dict(label)
