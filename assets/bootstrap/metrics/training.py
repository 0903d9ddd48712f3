"""Training of the running jobs: the newest rows of their runs' metrics.jsonl.

The folders belong to users. A file counts only if it is a regular file of the job's own user, and only
numbers are taken from it.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from slurm import Job
from textfile import Sample, replace
from trainkit.run.metrics import FILE, is_validation, row_of
from trainkit.run.run_files import seconds

_TAIL, _ROWS = 1 << 16, 32
# Interval of the search of all runs for a job that trains nothing or has not begun.
_LOOK_AGAIN_S = 300.0
_LONGEST_OWNER = 32
_GAUGES = {
    "step": "training_step",
    "loss": "training_loss",
    "grad_norm": "training_gradient_norm",
    "tokens_per_s": "training_tokens_per_second",
    "mfu": "training_mfu_ratio",
    "step_s": "training_step_seconds",
    "data_s": "training_data_wait_seconds",
    "memory_bytes": "training_memory_bytes",
    "world_size": "training_world_size",
}


def training_samples(jobs: Iterable[Job], *, runs: Path, kept: Path) -> Iterator[Sample]:
    """Yield the samples of each running job that trains.

    Args:
        runs: folder of all runs, WORKLOAD/RUN in it.
        kept: file with the run of each job, which only this program writes.
    """
    running = [job for job in jobs if job.state == "RUNNING"]
    folders = _folders(running, runs=runs, kept=kept)
    for job in running:
        if folder := folders.get(job.job_id):
            rows = [row for row in _rows(runs / folder / FILE, uid=job.uid) if not is_validation(row)]
            if rows:
                workload, _, run = folder.partition("/")
                labels = {"job": job.job_id, "user": job.user, "workload": workload, "run": run}
                yield from _samples(rows, labels)


def _samples(rows: list[dict[str, Any]], labels: Mapping[str, str]) -> Iterator[Sample]:
    newest = rows[-1]
    for key, name in _GAUGES.items():
        if newest.get(key) is not None:
            yield Sample(name, float(newest[key]), labels)
    if "loss" in newest:
        yield Sample("training_loss_is_finite", float(newest["loss"] is not None), labels)
    times = [seconds(str(row["time"])) for row in rows if row.get("time")]
    if times:
        yield Sample("training_row_seconds", times[-1], labels)
    # A restart's gap and the first steps are rare among the newest rows.
    between = [after - before for before, after in zip(times, times[1:]) if after > before]  # noqa: B905, RUF007 (3.9)
    if between:
        yield Sample("training_row_interval_seconds", median(between), labels)


def _rows(file: Path, *, uid: int) -> list[dict[str, Any]]:
    """Read the newest undamaged rows, oldest first; none from a file that is not the user's own."""
    owner, text = _read(file, most=_TAIL, from_end=True)
    if owner != uid:
        return []
    # The first line of a file's end is part of a line, not a row.
    return [row for line in text.splitlines()[-_ROWS:] if (row := row_of(line)) is not None]


def _read(file: Path, *, most: int, from_end: bool = False) -> tuple[int, bytes]:
    """Return the user id of the owner of a regular file, and its begin or end; -1 of any other file."""
    try:
        # A pipe in its place would block forever.
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return -1, b""
    with os.fdopen(opened, "rb") as stream:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            return -1, b""
        if from_end:
            stream.seek(max(0, found.st_size - most))
        return found.st_uid, stream.read(most)


def _folders(jobs: list[Job], *, runs: Path, kept: Path) -> dict[str, str]:
    """Return the run of each job, as WORKLOAD/RUN: job.slurm writes the job's id into its `owner`."""
    now = time.time()
    known = _known(kept)
    found: dict[str, tuple[str, float]] = {}
    sought: dict[str, Job] = {}
    for job in jobs:
        folder, looked = known.get(job.job_id, ("", 0.0))
        if folder or now - looked < _LOOK_AGAIN_S:
            found[job.job_id] = (folder, looked)
        # A run without RUN_NAME; anybody may make a folder of this name.
        elif own := next((each for each in runs.glob(f"*/job-{job.job_id}") if _is_of(each, job.uid)), None):
            found[job.job_id] = (f"{own.parent.name}/{own.name}", now)
        else:
            sought[job.job_id] = job
            # A new job may still wait for its nodes or prepare data.
            found[job.job_id] = ("", now if now - job.started > _LOOK_AGAIN_S else 0.0)
    if sought:
        for owner in runs.glob("*/*/owner"):
            claimed = _claimed(owner, sought)
            if claimed:
                found[claimed] = (f"{owner.parent.parent.name}/{owner.parent.name}", now)
    replace(kept, json.dumps(found))
    return {job: folder for job, (folder, _) in found.items()}


def _is_of(folder: Path, uid: int) -> bool:
    try:
        return folder.lstat().st_uid == uid
    except OSError:
        return False


def _claimed(owner: Path, sought: Mapping[str, Job]) -> str | None:
    """Return the job that has claimed a run, if it is one of those and its user wrote the file."""
    uid, text = _read(owner, most=_LONGEST_OWNER)
    job = sought.get(text.decode(errors="replace").strip())
    return job.job_id if job and job.uid == uid else None


def _known(kept: Path) -> dict[str, tuple[str, float]]:
    try:
        read = json.loads(kept.read_text(encoding="utf-8"))
        return {str(job): (str(folder), float(at)) for job, (folder, at) in read.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}
