"""The progress of a run in its checkpoint: a file that is read without torch."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import Data
from sizes import Shape
from trainkit.run import checkpoints
from trainkit.run.run import Run, die

FILE = "progress.json"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a run, and its model, data and ranks."""

    step: int
    tokens: int
    world_size: int
    """Number of the ranks that wrote it; another number of ranks can read it."""
    shape: dict[str, Any]
    data: str
    """Data.sum()."""

    def write(self, folder: Path) -> None:
        """Write the progress into the folder of an unfinished checkpoint."""
        (folder / FILE).write_text(json.dumps(dataclasses.asdict(self)) + "\n", encoding="utf-8")


def read_progress(checkpoint: Path) -> Progress:
    """Read the progress of a checkpoint; die if it is none of this workload."""
    try:
        return Progress(**json.loads((checkpoint / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        die(
            f"{checkpoint} is no checkpoint of this workload ({error}): move it away, or give another "
            "RUN_NAME."
        )


def find_checkpoint(run: Run, shape: Shape, data: Data) -> Path | None:
    """Find the run's newest checkpoint; die if it is of another model or other data."""
    found = checkpoints.resume_from(run)
    if found is None:
        return None
    noted, wanted = read_progress(found), dataclasses.asdict(shape)
    differing = [name for name, value in wanted.items() if noted.shape.get(name) != value]
    if differing:
        had = ", ".join(f"{name} {noted.shape.get(name)} instead of {wanted[name]}" for name in differing)
        die(f"{found} holds another model ({had}): give its sizes, or another RUN_NAME.")
    if noted.data != data.sum():
        die(
            f"{found} was trained on other data than {data.folder}: give its CORPUS and text, or another "
            "RUN_NAME."
        )
    return found
