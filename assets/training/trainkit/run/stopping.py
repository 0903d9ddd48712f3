"""Stop of a run by SIGTERM: its saves, and a warning if a stop leaves too little time for one."""

from __future__ import annotations

import math
import os
import signal
import time
import types
from collections.abc import Callable
from statistics import median

from trainkit import label
from trainkit.run import checkpoints, metrics
from trainkit.run.run import Run
from trainkit.run.settings import TrainSettings, is_given

SPOT_NOTICE_S = 120
"""Seconds between EC2's notice and the end of a spot instance."""
SAVING_SHARE = 0.05
"""Share of the time for checkpoints with which the advice calculates CHECKPOINT_EVERY."""
KILL_WAIT = "KILL_WAIT_S"
"""Seconds between Slurm's SIGTERM and its SIGKILL; job.slurm sets it."""
SETTLED_STEPS = 10
"""Number of steps of a start after which the length of a step is known."""
NAME = "CHECKPOINT_EVERY"


class Stop:
    """Request to stop, by the SIGTERM that Slurm sends before it ends the job.

    Ranks get the signal in different steps: read `asked` on each rank after each step, reduce it over ranks
    before acting, then decide together.
    """

    def __init__(self) -> None:
        self._asked = self._listens = False

    @property
    def asked(self) -> bool:
        """True if a SIGTERM came since the first read; read it first at the end of a start's first step.

        Before that read, SIGTERM ends the process: there is nothing to save, and the first step may compile
        for longer than Slurm waits.
        """
        if not self._listens:
            self._listens = True
            signal.signal(signal.SIGTERM, self._note)
        return self._asked

    def _note(self, _number: int, _frame: types.FrameType | None) -> None:
        self._asked = True


class Saves:
    """Number of steps between two checkpoints, the same on all ranks.

    EC2 may take a spot node before a checkpoint is written. There the number is lowered once, unless the user
    has set it: to the lowest one with which saving takes SAVING_SHARE of the time. A run's first start dies
    without the space for the checkpoints that are kept, and for one that is being written, or for as many as
    it writes.

    Args:
        checkpoint_bytes: size of a checkpoint of all ranks.
        agree: returns the number of the first rank on all ranks, as process_group.agree does.
    """

    def __init__(
        self, run: Run, settings: TrainSettings, *, checkpoint_bytes: int, agree: Callable[[int], int]
    ) -> None:
        self.every = every = settings.checkpoint_every
        self._may_lower = is_spot() and not is_given("checkpoint_every")
        if run.is_first:
            checkpoints.clear_partials(run.checkpoint_dir)  # of a start that was killed while saving
            # A resume waits for the space of one, and again after a failed save (space.sh).
            more = settings.keep_checkpoints + 1 if self._may_lower else settings.most_checkpoints
            if checkpoints.steps(run.checkpoint_dir):
                more = 1
            checkpoints.check_space(run.checkpoint_dir, checkpoint_bytes * more)
        self._run, self._bytes, self._last, self._agree = run, checkpoint_bytes, settings.max_steps, agree
        self._ends: list[float] = []
        warn_of_short_notice(run, checkpoint_bytes=checkpoint_bytes, every=every, may_lower=self._may_lower)

    def due(self, step: int) -> bool:
        """Return True if a checkpoint follows a step; all ranks call it once after each one."""
        if self._may_lower:
            self._ends.append(time.monotonic())
            if len(self._ends) > SETTLED_STEPS:
                self._may_lower = False
                self._lower()
        return step % self.every == 0 or step == self._last

    def _lower(self) -> None:
        steps = zip(self._ends[:-1], self._ends[1:], strict=True)
        step_s = max(median(end - begin for begin, end in steps), 1e-6)
        found = self._agree(fewest_steps(self._run, self._bytes, step_s=step_s) if self._run.is_first else 0)
        if not 0 < found < self.every:
            return
        if self._run.is_first:
            print(
                f"saving every {found} steps ({found * step_s / 60:,.1f} minutes) instead of {self.every}: "
                f"a checkpoint takes longer than the {SPOT_NOTICE_S} s of a spot node's notice, so what was "
                f"done since the last one is lost with a node. {SAVING_SHARE:.0%} of the time goes into "
                f"saving; a {NAME} that you set is kept."
            )
        self.every = found


def is_spot() -> bool:
    """Return True if EC2 may take the nodes of this job."""
    return os.environ.get("CAPACITY") == "spot"


def warn_of_short_notice(run: Run, *, checkpoint_bytes: int, every: int, may_lower: bool) -> None:
    """Print on the first rank which stops leave too little time for a checkpoint, and what to do.

    A stop takes up to two saves: one in progress ends before its own begins. If the time is enough for the
    first of them, only the steps since that one began are lost. The time of a save is known from the newest
    checkpoint of the run, or estimated from the throughput of the shared file system; without both nothing is
    printed. `every` is the number of steps between two checkpoints, which the run itself lowers later where
    `may_lower` is True.
    """
    if not run.is_first:
        return
    known = expected_save(run, checkpoint_bytes)
    if known is None:
        return
    save_s, how = known
    step_s = float(metrics.last_row(run.run_dir / metrics.FILE, of_step=True).get("step_s") or 0.0)
    # The step during which the signal arrives finishes first.
    stop_s = 2 * save_s + step_s
    minutes = f" ({every * step_s / 60:,.0f} minutes)" if step_s else ""
    # Saving in the background costs less.
    fewest = math.ceil(save_s / step_s / SAVING_SHARE) if step_s else every
    lower = f" to {fewest} ({SAVING_SHARE:.0%} of the time for saving)" if fewest < every else ""
    by_itself = " (this run does so after its first steps, where it helps)" if may_lower else ""
    stops = []
    if is_spot():
        stops.append((SPOT_NOTICE_S, "the notice of a spot node", "buy nodes on demand"))
    if kill_wait_s := int(os.environ.get(KILL_WAIT) or 0):
        more = "type sbatch --signal=TERM@SECONDS for a time limit"
        stops.append((kill_wait_s, "scancel or a requeue", more))
    for notice_s, stop, way_out in stops:
        if stop_s <= notice_s:
            continue
        lost = "the steps since a save in progress began would be lost. Order"
        if save_s + step_s > notice_s:
            lost = (
                f"up to {every} steps{minutes} since the last checkpoint would be lost. Lower "
                f"CHECKPOINT_EVERY{lower}{by_itself}, order"
            )
        print(
            f"stopping: a checkpoint takes about {save_s:,.0f} s ({how}), a stop up to {stop_s:,.0f} s, "
            f"since a save in progress ends before its own begins, and {stop} leaves {notice_s} s, so {lost} "
            f"more throughput (-c fsx_mbps_per_tib), or {way_out}."
        )


def expected_save(run: Run, checkpoint_bytes: int) -> tuple[float, str] | None:
    """Return the seconds that a checkpoint takes and their source; None if unknown."""
    if newest := checkpoints.find_complete(run.checkpoint_dir)[0]:
        measured_s = label.noted(newest).get("seconds")
        if isinstance(measured_s, (int, float)):
            return float(measured_s), f"measured at step {checkpoints.step_of(newest)}"
    if mbps := float(os.environ.get("SHARED_MBPS") or 0.0):
        return checkpoint_bytes / 1e6 / mbps, f"{checkpoint_bytes / 1e9:,.1f} GB at {mbps:,.0f} MB/s"
    return None


def fewest_steps(run: Run, checkpoint_bytes: int, *, step_s: float) -> int:
    """Return the steps between two saves that cost SAVING_SHARE of the time; 0 where the notice is enough.

    One save counts, not the two of a stop that arrives during a save: more saves would meet more stops.
    """
    known = expected_save(run, checkpoint_bytes)
    if known is None or known[0] + step_s <= SPOT_NOTICE_S:
        return 0
    return math.ceil(known[0] / step_s / SAVING_SHARE)
