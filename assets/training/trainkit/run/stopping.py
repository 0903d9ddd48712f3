"""Stop of a run: the handler of SIGTERM, and a warning where less time is left than a save takes."""

from __future__ import annotations

import math
import os
import signal
import types

from trainkit.run import checkpoints, metrics
from trainkit.run.run import Run

SPOT_NOTICE_S = 120
"""Seconds between EC2's notice and the end of a spot instance."""
SAVING_SHARE = 0.05
"""Share of the time that may go into checkpoints where the advice names a CHECKPOINT_EVERY."""
KILL_WAIT = "KILL_WAIT_S"
"""Seconds between Slurm's SIGTERM and its SIGKILL; job.slurm sets it."""


class Stop:
    """Request to stop, by the SIGTERM that Slurm sends before it takes the nodes away.

    Ranks get the signal in different steps: reduce it over ranks before acting, then decide together.
    """

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: types.FrameType | None) -> None:
        self.asked = True


def warn_of_short_notice(run: Run, *, checkpoint_bytes: int, every: int) -> None:
    """Print on the first rank which stops leave too little time for a checkpoint, and what to do.

    The time is that of the newest checkpoint of the run, or estimated from the throughput of the shared file
    system; without both nothing is printed. `every` is the number of steps between two checkpoints.
    """
    if not run.is_first:
        return
    known = expected_save(run, checkpoint_bytes)
    if known is None:
        return
    save_s, how = known
    step_s = float(metrics.last_row(run.run_dir / metrics.FILE, of_step=True).get("step_s") or 0.0)
    minutes = f" ({every * step_s / 60:,.0f} minutes)" if step_s else ""
    # Saving in the background costs less.
    fewest = math.ceil(save_s / step_s / SAVING_SHARE) if step_s else every
    lower = f" to {fewest} ({SAVING_SHARE:.0%} of the time for saving)" if fewest < every else ""
    stops = []
    if os.environ.get("CAPACITY") == "spot":
        stops.append((SPOT_NOTICE_S, "the notice of a spot node", "buy nodes on demand"))
    if kill_wait_s := int(os.environ.get(KILL_WAIT) or 0):
        more = "type sbatch --signal=TERM@SECONDS for a time limit"
        stops.append((kill_wait_s, "scancel or a requeue", more))
    for notice_s, stop, way_out in stops:
        # The step in which the signal arrives is finished first.
        if save_s + step_s > notice_s:
            print(
                f"stopping: a checkpoint takes about {save_s:,.0f} s ({how}), and {stop} leaves "
                f"{notice_s} s, so up to {every} steps{minutes} since the last checkpoint would be lost. "
                f"Lower CHECKPOINT_EVERY{lower}, order more throughput (-c fsx_mbps_per_tib), or {way_out}."
            )


def expected_save(run: Run, checkpoint_bytes: int) -> tuple[float, str] | None:
    """Return the seconds that a checkpoint takes and how they are known; None if they are not."""
    if newest := checkpoints.find_complete(run.checkpoint_dir)[0]:
        measured_s = checkpoints.save_seconds(newest)
        if measured_s is not None:
            return measured_s, f"measured at step {checkpoints.step_of(newest)}"
    if mbps := float(os.environ.get("SHARED_MBPS") or 0.0):
        return checkpoint_bytes / 1e6 / mbps, f"{checkpoint_bytes / 1e9:,.1f} GB at {mbps:,.0f} MB/s"
    return None
