"""Shared parts of every prepare.py: its end, the numbers that it reads, free space, the note of the data."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from trainkit.data.dataset_bucket import BucketError
from trainkit.data.shards import ShardError
from trainkit.run.files import write_whole

LESS = "take less text"


def main(run: Callable[[], None]) -> None:
    """Run a preparation; end the program with one sentence if it fails."""
    try:
        run()
    except (ShardError, BucketError) as error:
        sys.exit(f"prepare.py: {error}")
    except PermissionError as error:
        sys.exit(
            f"prepare.py: there is no permission for {error.filename}, which is another user's: ask for it "
            "to be readable or, if it is of a preparation that was interrupted, removed or submitted again."
        )
    except KeyboardInterrupt:
        sys.exit("prepare.py: interrupted; what is finished is kept, submit again.")


def prepare_workers() -> int:
    """Return PREPARE_WORKERS, the number of processes, which read_settings has checked; or one per core."""
    return int(os.environ.get("PREPARE_WORKERS") or len(os.sched_getaffinity(0)))


def validation_every(default: int) -> int:
    """Return VALIDATION_EVERY, which read_settings has checked, or a default."""
    return int(os.environ.get("VALIDATION_EVERY") or default)


def note_for_training(*, described: Sequence[str] = (), tokens: int = 0, **note: object) -> None:
    """Write $RUN_DIR/data.json, which train.py reads.

    Args:
        described: a sentence for each text, for the report of the run.
        tokens: tokens of an epoch, for the same.
    """
    note |= {"described": described, "tokens": tokens}
    write_whole(Path(os.environ["RUN_DIR"]) / "data.json", json.dumps(note) + "\n")


def check_space(folder: Path, wanted_bytes: float, *, less: str = LESS) -> None:
    """Refuse a file system that is too small, before an hour of work.

    Tokens take about half the bytes of text, and about the same as compressed text.

    Args:
        less: a way to need less space.

    Raises:
        ShardError: the file system has less space than wanted.
    """
    free = shutil.disk_usage(folder).free
    if free < wanted_bytes:
        raise ShardError(
            f"the data needs about {wanted_bytes / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free: "
            f"remove old runs there, or {less}."
        )
