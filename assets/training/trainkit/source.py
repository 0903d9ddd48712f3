"""EXPORT_RUN: the checkpoint whose weights a job exports instead of training."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from trainkit import label, sums
from trainkit.run import checkpoints
from trainkit.run.run import Run, die


@dataclass(frozen=True)
class ExportSettings:
    """Settings of an export; a workload's Settings inherit them."""

    export_run: str = ""
    """Name of a run of this workload, of which a checkpoint's weights are exported instead of training."""
    export_step: int = 0
    """Step of that checkpoint; 0 for the newest."""
    export_to: str = ""
    """Folder of these weights; empty for export-step-<step> in the run's folder."""

    @property
    def trains(self) -> bool:
        """False in a job that exports weights, or only prepares data."""
        return not self.export_run and os.environ.get("PREPARE_ONLY") != "1"


def check_export(settings: ExportSettings) -> None:
    """Die unless EXPORT_RUN can be a run's name, and the other settings of an export come with it."""
    run = settings.export_run
    if run and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", run):
        die(f'EXPORT_RUN is "{run}": give the name of a run of this workload, such as job-17.')
    for name in ("export_step", "export_to"):
        if not run and (value := getattr(settings, name)):
            die(f"{name.upper()}={value} is for the export of a run: give its name as EXPORT_RUN, too.")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A checkpoint that is exported."""

    run_dir: Path
    """Folder of the run that wrote it."""
    checkpoint: Path
    to: Path


def find_source(settings: ExportSettings, run: Run, *, needs: str) -> Source | None:
    """Return the checkpoint of EXPORT_RUN; None if this job trains.

    Dies if there is no such run or checkpoint, if another user could have written it, or if EXPORT_TO exists.

    Args:
        run: this job's own run, whose folders are beside EXPORT_RUN's.
        needs: name of the file of a run's folder that an export reads.
    """
    if not settings.export_run:
        return None
    where, saved = (each.with_name(settings.export_run) for each in (run.run_dir, run.checkpoint_dir))
    newest = checkpoints.newest(saved)
    found = checkpoints.path_of(saved, settings.export_step) if settings.export_step else newest
    if not found or not found.is_dir():
        there = ", ".join(map(str, checkpoints.steps(saved))) or "none"
        of_step = f" of step {settings.export_step}" if settings.export_step else ""
        die(f"EXPORT_RUN={settings.export_run} has no checkpoint{of_step} in {saved}; there are: {there}.")
    if fault := label.fault_of(found):
        die(f"{found} is incomplete ({fault}): give another EXPORT_STEP.")
    noted, ranks = sums.noted_sums(found), run.world_size
    if changed := sums.changed_files(found, noted, share=run.rank, shares=ranks):
        die(f"{changed[0]} of {found} has other bytes than when it was saved: give another EXPORT_STEP.")
    if not (where / needs).is_file():
        die(f"{where / needs} is missing, which an export requires: resume the run once with this version.")
    # A checkpoint may hold code.
    if any(each.stat().st_uid not in {0, os.getuid()} for each in (where / needs, found, *found.iterdir())):
        die(f"{found} belongs to another user, who could run code as you by it: have its owner export it.")
    to = Path(settings.export_to or where / f"export-{found.name}")
    if run.is_first and to.exists():
        die(f"{to} already exists: move it away, or give another folder as EXPORT_TO.")
    return Source(run_dir=where, checkpoint=found, to=to)
