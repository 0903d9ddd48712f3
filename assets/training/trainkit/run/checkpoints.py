"""Checkpoints of a run: folders step-000123, each whole from the moment it has its name.

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
# In each checkpoint: its step, and the run that made it.
LABEL = "checkpoint.json"


def steps(folder: Path) -> list[int]:
    """Steps of the whole checkpoints, oldest first."""
    names = (path.name for path in folder.glob("step-*") if path.is_dir())
    return sorted(int(name.removeprefix("step-")) for name in names if re.fullmatch(r"step-\d{6,}", name))


def path_of(folder: Path, step: int) -> Path:
    """Where the whole checkpoint of a step is, or will be."""
    return folder / f"step-{step:06d}"


def newest(folder: Path) -> Path | None:
    """The whole checkpoint of the highest step."""
    found = steps(folder)
    return path_of(folder, found[-1]) if found else None


def partial(folder: Path, step: int) -> Path:
    """Where to write the checkpoint of a step; a folder, not made yet."""
    return folder / f".{path_of(folder, step).name}.partial"


def clear_partials(folder: Path) -> None:
    """Remove what an interrupted save left. For rank 0, with a barrier before the others write."""
    for left in folder.glob(".step-*.partial"):
        shutil.rmtree(left)


def sync_files(folder: Path) -> None:
    """Have all files of a folder on the disk. Each node's first rank calls it, after its node wrote."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def publish(written: Path, step: int, *, run: Run, keep: int) -> Path:
    """Give a complete folder its name, note latest_step, and remove this run's own oldest.

    For rank 0, after a barrier. `keep` of them stay (at least 1), and all that this run did not make.
    """
    folder = written.parent
    final = path_of(folder, step)
    label = {"step": step, "run": str(run.run_dir)}
    (written / LABEL).write_text(json.dumps(label) + "\n", encoding="utf-8")
    sync_files(written)
    # The rows up to this step are not written again after a resume.
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
            # It loses its name first: what is left of an interrupted removal is no checkpoint.
            shutil.rmtree(path_of(folder, old).rename(partial(folder, old)))
    return final


def note_step(folder: Path, step: int) -> None:
    """Write latest_step: for trainers that have checkpoints of their own kind, when one is whole."""
    write_whole(folder / LATEST_STEP, f"{step}\n")


def _maker(checkpoint: Path) -> str | None:
    label = checkpoint / LABEL
    if not label.is_file():
        return None
    return str(json.loads(label.read_text(encoding="utf-8"))["run"])


def check_space(folder: Path, bytes_needed: int) -> None:
    """Die unless the file system of `folder` has room: better now than at the first save."""
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        die(
            f"checkpoints need {bytes_needed / 1e9:.1f} GB (those kept, and one that is being written) "
            f"and {folder} has {free / 1e9:.1f} GB free: remove old runs, or keep fewer (KEEP_CHECKPOINTS)."
        )
