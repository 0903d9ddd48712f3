"""Checkpoints: the training time that one costs, and the time to resume from one."""

import datetime
import itertools
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from bench.measuring.result import Result, Row, spread
from bench.subjects.workloads import Settings, Workload

TITLE = "checkpoints: what they cost the training"
# Steps between two checkpoints here; the later half of them is not affected by the checkpoint before.
EVERY = 10
CHECKPOINTS = 4
GPT2: Settings = {
    "init_from": "scratch",
    "gpt2_layers": 6,
    "gpt2_heads": 6,
    "gpt2_width": 384,
    "gpt2_context": 128,
    "vocab_size": 2048,
    "batch_size": 4,
}
SHARED: Settings = {
    "corpus": "machine",
    "device": "cpu",
    "mixed_precision": "no",
    "checkpoint_every": EVERY,
    "eval_sequences": 0,
    "warmup_steps": 5,
    # The last checkpoint is written at the end of the run, and is left out.
    "max_steps": (CHECKPOINTS + 1) * EVERY,
}
_MADE, _RESUMED = r"^GPT-2, .* parameters from", r"^resuming from"


def measure() -> Result:
    """Run gpt2 once, then resume it from its last checkpoint."""
    threads = psutil.cpu_count(logical=False) or 1
    with tempfile.TemporaryDirectory() as name:
        gpt2 = _run(Path(name), "gpt2", GPT2, made=_MADE, threads=threads)
    steps = [stall / gpt2["step_s"] for stall in gpt2["stalls_s"]]
    return Result(
        rows=[
            Row(
                name="gpt2, synchronous: stall a checkpoint, of a step",
                measured=spread(steps, " steps"),
            ),
            Row(
                name=f"gpt2: restore, {gpt2['checkpoint_bytes'] / 1e6:.0f} MB",
                measured=f"{gpt2['restore_s']:.2f} s",
            ),
        ],
        figures={"gpt2": gpt2},
        notes=[
            f"The stall is the extra time of {EVERY} steps with one checkpoint over {EVERY} steps without. "
            f"One rank, {threads} threads, about 11 M parameters, on this machine's disk.",
            "On GPUs, steps are shorter and checkpoints are larger; this was not measured. titan uses "
            "torchtitan's checkpoints, which were not measured either.",
        ],
    )


def stalls(times: Sequence[float], *, every: int) -> tuple[float, list[float]]:
    """Return the seconds of a quiet step, and the extra seconds of each interval between checkpoints.

    Args:
        times: seconds at which each step ended, starting with the first.
        every: steps between checkpoints. Intervals begin with the first checkpoint; that at the end of
            the run closes the last interval.
    """
    took = [end - begin for begin, end in itertools.pairwise(times)]
    # took[n] is the time of step n + 2, and includes the checkpoint after step n + 1.
    intervals = [took[begin : begin + every] for begin in range(every - 1, len(took) - every + 1, every)]
    quiet = statistics.median(step for interval in intervals for step in interval[every // 2 :])
    return quiet, [sum(interval) - every * quiet for interval in intervals]


def _run(folder: Path, name: str, own: Settings, *, made: str, threads: int) -> dict[str, Any]:
    workload = Workload(name=name, shared=folder)
    settings = {**SHARED, **own, "omp_num_threads": threads}
    workload.prepare("run", settings)
    workload.train("run", settings)
    times = [datetime.datetime.fromisoformat(row["time"]).timestamp() for row in workload.metrics("run")]
    step_s, stalls_s = stalls(times, every=EVERY)
    longer = {**settings, "max_steps": int(str(SHARED["max_steps"])) + 1}
    again = workload.train("run", longer)
    checkpoints = sorted((folder / "checkpoints" / "run").glob("step-*"))
    return {
        "step_s": step_s,
        "stalls_s": stalls_s,
        "restore_s": again.at(_RESUMED) - again.at(made),
        "checkpoint_bytes": sum(file.stat().st_size for file in checkpoints[-1].rglob("*") if file.is_file()),
    }
