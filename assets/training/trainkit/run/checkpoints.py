"""Checkpoints of a run: folders step-000123, complete as soon as they have that name.

All ranks write into partial(); after a barrier rank 0 publishes it. $CHECKPOINT_DIR/latest_step then holds
the step, which is how job.slurm knows that a run got on.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from trainkit.run import metrics
from trainkit.run.files import sync, write_whole
from trainkit.run.run import Run, die

LATEST_STEP = "latest_step"
# File in each checkpoint with its step and the run that made it.
LABEL = "checkpoint.json"


def steps(folder: Path) -> list[int]:
    """List the steps of the complete checkpoints, oldest first."""
    names = (path.name for path in folder.glob("step-*") if path.is_dir())
    return sorted(int(name.removeprefix("step-")) for name in names if re.fullmatch(r"step-\d{6,}", name))


def path_of(folder: Path, step: int) -> Path:
    """Return the folder of the complete checkpoint of a step, which may not exist yet."""
    return folder / f"step-{step:06d}"


def newest(folder: Path) -> Path | None:
    """Find the complete checkpoint of the highest step."""
    found = steps(folder)
    return path_of(folder, found[-1]) if found else None


def partial(folder: Path, step: int) -> Path:
    """Return the folder in which to write the checkpoint of a step; it is not created."""
    return folder / f".{path_of(folder, step).name}.partial"


def clear_partials(folder: Path) -> None:
    """Remove the folders of interrupted saves; rank 0 calls it, before a barrier."""
    for left in folder.glob(".step-*.partial"):
        shutil.rmtree(left)


def sync_files(folder: Path) -> None:
    """Flush all files of a folder to the disk; the first rank of each node calls it after the writes."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def publish(written: Path, step: int, *, run: Run, keep: int) -> Path:
    """Rename a complete folder, write latest_step, and remove the oldest checkpoints of this run.

    Rank 0 calls it after a barrier. `keep` checkpoints stay (at least 1), and all of other runs.
    """
    folder = written.parent
    final = path_of(folder, step)
    label = {"step": step, "run": str(run.run_dir)}
    (written / LABEL).write_text(json.dumps(label) + "\n", encoding="utf-8")
    sync_files(written)
    # A resume does not write the rows up to this step again.
    if (rows := run.run_dir / metrics.FILE).is_file():
        sync(rows)
    if final.is_dir():  # the very step that this run started from
        shutil.rmtree(written)
    else:
        written.rename(final)
    note_step(folder, step)
    own = [at for at in steps(folder) if _maker(path_of(folder, at)) == label["run"]]
    for old in own[: -max(1, keep)]:
        if old != step:
            # The rename comes first, so that an interrupted removal leaves no checkpoint.
            shutil.rmtree(path_of(folder, old).rename(partial(folder, old)))
    return final


def note_step(folder: Path, step: int) -> None:
    """Write latest_step; trainers with their own kind of checkpoint call it when one is complete."""
    write_whole(folder / LATEST_STEP, f"{step}\n")


def _maker(checkpoint: Path) -> str | None:
    label = checkpoint / LABEL
    if not label.is_file():
        return None
    return str(json.loads(label.read_text(encoding="utf-8"))["run"])


def check_space(folder: Path, bytes_needed: int) -> None:
    """Die unless the file system of `folder` has room, before the first step instead of at the first save."""
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        die(
            f"checkpoints need {bytes_needed / 1e9:.1f} GB (those kept, and one that is being written) "
            f"and {folder} has {free / 1e9:.1f} GB free: remove old runs, or keep fewer (KEEP_CHECKPOINTS)."
        )
