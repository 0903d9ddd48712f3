"""Checkpoints of a run: folders step-000123, complete as soon as they have that name.

All ranks write into partial(), and after a barrier rank 0 publishes it. $CHECKPOINT_DIR/latest_step then has
the step, by which job.slurm knows that a run has progressed. A folder can lose files later, such as in a
bucket with only half of its objects, and bytes can change, so its checkpoint.json lists the files with their
sizes and sums (trainkit.sums). Files are flushed before the folder is named.

run_module.py trainkit.run.checkpoints CHECKPOINT_DIR   checks the folders, and corrects latest_step; with
VERIFY_DATA=no by the sizes alone
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any, NoReturn

from trainkit import sums
from trainkit.label import DAMAGED, content_of, fault_of, noted, sum_of_label
from trainkit.run import metrics
from trainkit.run.files import sync, write_whole
from trainkit.run.run import Run, die, reason
from trainkit.run.run_files import STARTS, lines_of
from trainkit.run.settings import TrainSettings
from trainkit.sums import LABEL

LATEST_STEP = "latest_step"
_UNLOADABLE = "the ranks could not load it"
# Parts of the messages about ranks that have ended meanwhile, and about a rank's own GPU.
_PEER_ERRORS = ("onnection", "imed out", "remote process exited", "CUDA error", "NCCL")
# Parts of torch's and safetensors' messages about a file that they cannot write.
WRITE_ERRORS = ("PytorchStreamWriter", "unexpected pos", "iostream error", "os error")
# Step of the checkpoint that job.slurm checked before it started the ranks; 0 without a checkpoint.
START_STEP = "START_STEP"


def steps(folder: Path) -> list[int]:
    """List the steps of the complete checkpoints, oldest first."""
    names = (path.name for path in folder.glob("step-*") if path.is_dir())
    return sorted(int(name.removeprefix("step-")) for name in names if re.fullmatch(r"step-\d{6,}", name))


def path_of(folder: Path, step: int) -> Path:
    """Return the folder of a step's complete checkpoint, which may not exist yet."""
    return folder / f"step-{step:06d}"


def step_of(checkpoint: Path) -> int:
    """Return the step in the name of a checkpoint."""
    return int(checkpoint.name.removeprefix("step-"))


def find_complete(folder: Path) -> tuple[Path | None, list[str]]:
    """Find the complete checkpoint of the highest step, and describe the incomplete ones of higher steps.

    Folders are not checked if none has a checkpoint.json, since they are then of another kind. Dies if this
    user may not enter a folder: its checkpoint is complete for others, and is not replaced.
    """
    found = [path_of(folder, step) for step in reversed(steps(folder))]
    try:
        if not any(map(_has_label, found)):
            return next(iter(found), None), []
    except PermissionError as error:
        path = Path(error.filename).parent
        die(
            f"{path} belongs to another user, who keeps it private: have its owner type "
            f"chmod -R a+rX {path}, or give another RUN_NAME."
        )
    faults: list[str] = []
    for path in found:
        if (fault := fault_of(path)) is None:
            return path, faults
        faults.append(f"{path} is incomplete ({fault})")
    return None, faults


def _has_label(checkpoint: Path) -> bool:
    """Return True if a checkpoint has a checkpoint.json.

    Raises PermissionError, which is_file() of Python 3.14 no longer does.
    """
    try:
        return S_ISREG((checkpoint / LABEL).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:
        raise
    except OSError:  # fault_of says why it cannot be read
        return True


def newest(folder: Path) -> Path | None:
    """Find the complete checkpoint of the highest step; die if all are incomplete."""
    found, faults = find_complete(folder)
    if faults and not found:
        die(
            f"no checkpoint can be read: {'; '.join(faults)}. Copy the files back, or move the folders away "
            "to begin at step 0, or give another RUN_NAME."
        )
    for fault in faults:
        print(f"checkpoints: {fault}: continuing from {found}", file=sys.stderr)
    return found


def resume_from(run: Run) -> Path | None:
    """Return the checkpoint from which a run continues; None at its first start.

    It is the one that job.slurm has checked, so that not every rank checks all its files.
    """
    if checked := int(os.environ.get(START_STEP) or 0):
        found = path_of(run.checkpoint_dir, checked)
        if found.is_dir():
            return found
    return newest(run.checkpoint_dir)


@contextlib.contextmanager
def loading(checkpoint: Path) -> Iterator[None]:
    """Die with one sentence if the block, which loads a checkpoint, fails; give_up decides what follows."""
    try:
        yield
    except Exception as error:
        give_up(checkpoint, error)


def give_up(checkpoint: Path, error: BaseException) -> NoReturn:
    """Die, since a checkpoint cannot be loaded; each rank that fails calls it.

    The run's next start takes the checkpoint before. If that one cannot be loaded either, the fault is not
    theirs (a node, the versions of packages), and the start after that takes the newest again.
    """
    if "out of memory" in str(error):
        raise error  # trainkit.memory says what to lower
    folder, why = checkpoint.parent, f"{type(error).__name__}: {reason(error, line=-1)}"
    sentence = f"{checkpoint} cannot be loaded ({why})"
    is_of_run = str(folder) == os.environ.get("CHECKPOINT_DIR")  # else it is exported
    if not is_of_run or any(words in str(error) for words in _PEER_ERRORS):
        die(f"{sentence}.")
    check_is_newest()
    faults = {(path := path_of(folder, step)): fault_of(path) for step in steps(folder)}
    # Another rank may have removed the mark already.
    later = [
        path
        for path, fault in faults.items()
        if step_of(path) > step_of(checkpoint) and _UNLOADABLE in (fault or _UNLOADABLE)
    ]
    for path in later:
        (path / DAMAGED).unlink(missing_ok=True)
    if later:
        die(
            f"{sentence}, nor could {later[-1]}: look for another cause. The next start takes that one again."
        )
    before = [path for path, fault in faults.items() if step_of(path) < step_of(checkpoint) and not fault]
    if not before:
        die(f"{sentence}, and no complete one is before it. To begin at step 0, move it away.")
    mark = checkpoint / DAMAGED
    try:
        mark.write_text(f"{_UNLOADABLE} ({why}); to try it again, remove {DAMAGED}\n", encoding="utf-8")
    except OSError as failed:
        die(f"{sentence}. {mark} cannot be written ({failed.strerror}): move the folder away.")
    die(f"{sentence}: the next start takes {before[-1]}, unless you remove {mark}.")


@contextlib.contextmanager
def saving(run: Run) -> Iterator[None]:
    """Die with one sentence if the block, which writes a checkpoint, cannot write a file.

    Other errors pass: one rank that dies ends the connections of the others.
    """
    try:
        yield
    except Exception as error:
        is_connection = isinstance(error, (ConnectionError, TimeoutError))
        is_file = isinstance(error, OSError) or any(words in str(error) for words in WRITE_ERRORS)
        if is_connection or not is_file:
            raise
        die_of_failed_save(run, error)


@contextlib.contextmanager
def writing(
    run: Run, step: int, *, settings: TrainSettings, barrier: Callable[[], object] | None = None
) -> Iterator[Path]:
    """Give the block the folder for the checkpoint of a step; afterwards the first rank publishes it.

    Args:
        barrier: waits for the other ranks, where all of them write; by default the first one writes alone.
    """
    started, folder = time.monotonic(), partial(run.checkpoint_dir, step)
    if run.is_first:
        clear_partials(run.checkpoint_dir)
        folder.mkdir(parents=True)
    if barrier:
        barrier()
    yield folder
    if barrier:
        barrier()
    if run.is_first:
        keep = settings.keep_checkpoints
        final = publish(folder, step, run=run, keep=keep, started=started, settings=settings)
        print(f"step {step}: checkpoint {final}")


def die_of_failed_save(run: Run, error: BaseException) -> NoReturn:
    """Die because of an error of the file system, with its free space in the message."""
    free = shutil.disk_usage(run.checkpoint_dir).free
    die(
        f"a checkpoint could not be written into {run.checkpoint_dir}, which has {free / 1e9:.1f} GB free "
        f"({reason(error, line=-1)}): fix that, and submit again with the same RUN_NAME."
    )


def partial(folder: Path, step: int) -> Path:
    """Return the folder in which this start writes the checkpoint of a step; it is not created."""
    start = f"{os.environ.get('SLURM_JOB_ID', '0')}-{os.environ.get('START_NUMBER', '0')}"
    return folder / f".{path_of(folder, step).name}.{start}.partial"


def clear_partials(folder: Path) -> None:
    """Remove the folders of interrupted saves; rank 0 calls it, before a barrier. Dies in an older start."""
    check_is_newest()
    for left in folder.glob(".step-*.partial"):
        shutil.rmtree(left)


def sync_files(folder: Path) -> None:
    """Flush all files of a folder to the disk; ranks of other nodes flush their own beforehand."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def publish(
    written: Path,
    step: int,
    *,
    run: Run,
    keep: int,
    started: float | None = None,
    settings: TrainSettings | None = None,
) -> Path:
    """Rename a complete folder, write latest_step, and remove the oldest checkpoints of this run.

    Rank 0 calls it after a barrier.

    Args:
        keep: number of checkpoints that stay (at least 1); checkpoints of other runs stay, too.
        started: time.monotonic() at which the save began, for the next start to know how long one takes.
        settings: settings of this start, for a resume to compare.
    """
    folder = written.parent
    final = path_of(folder, step)
    label: dict[str, Any] = {"step": step, "run": str(run.run_dir), **content_of(written)}
    if settings:
        label["settings"] = dataclasses.asdict(settings)
    sync_files(written)
    if started is not None:
        label["seconds"] = round(time.monotonic() - started, 2)
    write_whole(written / LABEL, json.dumps(label | {"sum": sum_of_label(label)}) + "\n")
    # A resume does not write the rows up to this step again.
    if (rows := run.run_dir / metrics.FILE).is_file():
        sync(rows)
    check_is_newest()
    if final.is_dir() and fault_of(final) is None:  # the step from which this run started
        shutil.rmtree(written)
    else:
        if final.is_dir():
            shutil.rmtree(final.rename(folder / f".{final.name}.incomplete.partial"))
        written.rename(final)
    note_step(folder, step)
    _remove_old(folder, run, keep=max(1, keep))
    return final


def _remove_old(folder: Path, run: Run, *, keep: int) -> None:
    """Remove the checkpoints of a run that are older than the newest `keep` complete ones."""
    own = [path for at in steps(folder) if noted(path := path_of(folder, at)).get("run") == str(run.run_dir)]
    kept = 0
    for path in reversed(own):
        if kept == keep:
            # The rename comes first, so that an interrupted removal leaves no checkpoint.
            shutil.rmtree(path.rename(partial(folder, step_of(path))))
        elif fault_of(path) is None:
            kept += 1


def note_step(folder: Path, step: int) -> None:
    """Write latest_step; trainers with their own kind of checkpoint call it when one is complete.

    Dies if the job has started its ranks again meanwhile, which happens to ranks on a node that Slurm cannot
    reach: the newer ranks have the run.
    """
    check_is_newest()
    _write_step(folder, step)


def _write_step(folder: Path, step: int) -> None:
    write_whole(folder / LATEST_STEP, f"{step}\n")


def check_is_newest() -> None:
    """Die if the run has a later start than that of these ranks, which job.slurm has written down."""
    number, started = os.environ.get("START_NUMBER"), lines_of(Path(os.environ.get("RUN_DIR", "")) / STARTS)
    if number and started:
        try:
            latest, _, _, _, job, *_ = started[-1].split()
        except ValueError:  # a line that a full disk has cut
            return
        if job.isdigit() and latest.isdigit() and (job, latest) != (os.environ.get("SLURM_JOB_ID"), number):
            die(f"start {latest} of job {job} has the run now: these older ranks save nothing, and end.")


def check_space(folder: Path, bytes_needed: int) -> None:
    """Die unless the file system of `folder` has space, before the first step, not at the first save."""
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        die(
            f"checkpoints need {bytes_needed / 1e9:.1f} GB (those kept, and one that is being written) "
            f"and {folder} has {free / 1e9:.1f} GB free: remove old runs, or keep fewer (KEEP_CHECKPOINTS)."
        )


def find_unchanged(folder: Path) -> Path | None:
    """Find the complete checkpoint of the highest step whose bytes have not changed; the job's nodes read it.

    Dies if there is none among several.
    """
    while found := newest(folder):
        if not (found / LABEL).is_file() or os.environ.get("VERIFY_DATA") == "no":
            return found
        own = noted(found).get("sums", {})
        if not own:
            print(
                f"checkpoints: {found} is of an older version, without sums: used unchecked", file=sys.stderr
            )
        if not (changed := sums.changed_files_of_job(found, own)):
            return found
        fault = f"{changed[0]} has other bytes than when it was saved; remove {DAMAGED} if you restore it"
        try:
            write_whole(found / DAMAGED, f"{fault}\n")
        except OSError as error:
            die(
                f"in {found}, {changed[0]} has other bytes than when it was saved, and {DAMAGED} cannot be "
                f"written there ({error.strerror}): move the folder away, and submit again."
            )
    return None


def main() -> None:
    """Correct latest_step of the folder on the command line, where job.slurm reads the step of the start."""
    folder = Path(sys.argv[1])
    try:
        found = find_unchanged(folder)
        # A trainer with its own kind of checkpoint writes latest_step by itself.
        if found and (found / LABEL).is_file():
            _write_step(folder, step_of(found))
    except OSError as error:
        die(f"{folder} cannot be used ({reason(error, line=0)}).")


if __name__ == "__main__":
    main()
