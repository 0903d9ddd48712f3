"""A trainer of a few lines: its loss falls by a fixed rule, and its state goes through the real checkpoints.

Ranks meet after each step, by files: as with a collective, none goes on alone, a lost one ends all.
"""

import json
import os
import shutil
import signal
import time
from pathlib import Path

from trainkit import network
from trainkit.run import checkpoints, stacks
from trainkit.run.metrics import Metrics
from trainkit.run.outcome import finished, stopped
from trainkit.run.run import Run
from trainkit.run.steps import peak_bytes
from trainkit.run.stopping import Stop, warn_of_short_notice

MAX_STEPS = int(os.environ.get("MAX_STEPS", "8"))
STEP_S = float(os.environ.get("STEP_S", "0.2"))
CHECKPOINT_EVERY = int(os.environ.get("CHECKPOINT_EVERY", "2"))
# The last rank sends itself DIES_BY after so many steps of a start; 0: never.
DIES_AFTER = int(os.environ.get("DIES_AFTER", "0"))
DIES_BY = signal.Signals[os.environ.get("DIES_BY", "SIGKILL")]
# Step before which the ranks wait until a test lets them go on (tiny.let_go); 0: none.
HOLD_AT = int(os.environ.get("HOLD_AT", "0"))
# How many starts end like that.
DEATHS = int(os.environ.get("DEATHS", "1"))
# Step whose checkpoint cannot be loaded, until a start has ended like that.
TORN_AT = int(os.environ.get("TORN_AT", "0"))
# Seconds that a disk takes for the checkpoint of a stop.
STOP_SAVE_S = float(os.environ.get("STOP_SAVE_S", "0"))
# 1: ranks do not notice that another is gone, as with NCCL over EFA.
DEAF = os.environ.get("DEAF") == "1"
# A file with lines of NCCL, which each node then writes as NCCL does; without it the ranks do not use NCCL.
NCCL_LINES = os.environ.get("NCCL_LINES")


class World:
    """The ranks of this start."""

    def __init__(self, run: Run) -> None:
        start = f"{os.environ['SLURM_JOB_ID']}-{os.environ.get('START_NUMBER', '0')}"
        self._files = [run.run_dir / f"rank-{start}-{rank}" for rank in range(run.world_size)]
        self._own = self._files[run.rank]
        self._note(0, asked=False)

    def _note(self, step: int, *, asked: bool) -> None:
        partial = self._own.with_suffix(".partial")
        partial.write_text(f"{os.getpid()} {step} {int(asked)}")
        partial.rename(self._own)

    def meet(self, step: int, *, asked: bool) -> bool:
        """Wait until all ranks are at `step`; whether one of them was asked to stop."""
        self._note(step, asked=asked)
        return True in [_arrived(file, step) for file in self._files]


def _arrived(file: Path, step: int) -> bool:
    gone = False
    while True:
        if file.is_file():
            pid, at, asked = (int(word) for word in file.read_text().split())
            if at == step:
                return bool(asked)
            if at > step:  # it was not asked then, or it would have left
                return False
            if gone:  # before this look: the last step may have come with its end
                raise ProcessLookupError(f"process {pid} is gone at step {at}")
            gone = not DEAF and not Path(f"/proc/{pid}").exists()
        time.sleep(0.01)


def save(run: Run, step: int, loss: float, *, disk_s: float = 0.0) -> None:
    """Write a checkpoint beside its place, then publish it, as a trainer does."""
    started = time.monotonic()
    written = checkpoints.partial(run.checkpoint_dir, step)
    checkpoints.clear_partials(run.checkpoint_dir)
    written.mkdir()
    state = "torn" if step == TORN_AT and not deaths(run) else json.dumps({"loss": loss})
    (written / "state.json").write_text(state)
    time.sleep(disk_s)
    checkpoints.publish(written, step, run=run, keep=2, started=started)


def start_nccl(run: Run) -> None:
    """Write NCCL's lines about its network where the settings of this rank request them."""
    network.record(run)
    if run.local_rank == 0:
        shutil.copyfile(str(NCCL_LINES), os.environ["NCCL_DEBUG_FILE"])


def deaths(run: Run) -> int:
    """Count the starts that the last rank ended."""
    return len(list(run.run_dir.glob("died-*")))


def die_if_asked(run: Run, steps: int) -> None:
    """End as a rank does that runs out of memory, if that is asked for."""
    if run.rank == run.world_size - 1 and DIES_AFTER == steps > 0 and deaths(run) < DEATHS:
        (run.run_dir / f"died-{deaths(run) + 1}").touch()
        os.kill(os.getpid(), DIES_BY)


def main() -> None:
    """One rank's whole life."""
    run, stop = Run.from_environment(), Stop()
    stacks.register(run)
    if NCCL_LINES:
        start_nccl(run)
    world = World(run)
    (run.run_dir / f"pid-{run.rank}").write_text(str(os.getpid()))
    (run.run_dir / f"world-{run.rank}").write_text(f"{os.environ['LOCAL_RANK']} {os.environ['WORLD_SIZE']}")
    resumed = checkpoints.resume_from(run)
    first = checkpoints.step_of(resumed) if resumed else 0
    loss = 8.0
    if resumed:
        with checkpoints.loading(resumed):
            loss = float(json.loads((resumed / "state.json").read_text())["loss"])
    warn_of_short_notice(run, checkpoint_bytes=10, every=CHECKPOINT_EVERY, may_lower=False)
    metrics = Metrics(run.run_dir / "metrics.jsonl", after_step=first) if run.is_first else None
    for step in range(first + 1, MAX_STEPS + 1):
        while step == HOLD_AT and not (run.run_dir / "go").exists():
            time.sleep(0.05)
        die_if_asked(run, step - first - 1)
        time.sleep(STEP_S)
        loss *= 0.97
        asked = world.meet(step, asked=stop.asked)
        if step == first + 1:
            network.report()
        if metrics:
            line = metrics.add(
                step=step,
                loss=loss,
                learning_rate=0.1,
                tokens=step * 100,
                tokens_per_s=100 / STEP_S,
                step_s=STEP_S,
                data_s=0.0,
                memory_bytes=peak_bytes("cpu"),
                world_size=int(os.environ["WORLD_SIZE"]),
            )
            print(line)
            if step % CHECKPOINT_EVERY == 0 or step == MAX_STEPS or asked:
                began = time.monotonic()
                with checkpoints.saving(run):
                    save(run, step, loss, disk_s=STOP_SAVE_S if asked else 0.0)
                metrics.saved(time.monotonic() - began)
        if asked:
            stopped(run, step)
            return
    finished(run)


main()
