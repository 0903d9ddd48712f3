"""Problems of nodes and jobs, counted for CloudWatch's alarms where no Prometheus has rules.

A number is published only while it is not 0: CloudWatch charges for a metric only in hours with values. The
limits are those of monitoring/rules.yml, which a test compares.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from cloudwatch import Metric
from command import TIMEOUT_S
from gpus import Gpu, gpu_samples
from slurm_nodes import Node, each_once
from textfile import Sample
from xids import xid_samples

NODE_OUT_S = 600.0
IDLE_RATIO, IDLE_S = 0.05, 900.0
FABRIC_S = 300.0
"""Seconds since boot from which a GPU outside the fabric counts."""
STEPS, NO_STEP_S = 10, 900.0
BACKLOG, CYCLE_S = 200, 5.0
"""Largest queue or number of threads of slurmctld, and the longest cycle of its main scheduler."""

IDLE_SINCE = Path(os.environ.get("TRAINING_ROOT") or "/") / "run/training-cluster-gpus-idle"
"""File whose time is that of the first reading of idle GPUs in the running job."""


def counted(problems: Mapping[str, Callable[[], int]]) -> tuple[list[Metric], bool]:
    """Return a metric for each problem that exists, and False if one could not be counted."""
    found, is_complete = [], True
    for name, count in problems.items():
        try:
            if number := count():
                found.append(Metric(name, [float(number)], "Count"))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            is_complete = False
    return found, is_complete


def nodes_out(nodes: Iterable[Node]) -> int:
    """Return the number of nodes that have taken no job for NODE_OUT_S."""
    oldest = time.time() - NODE_OUT_S
    return sum(
        node.state == "down" and node.out_since is not None and node.out_since < oldest
        for node in each_once(nodes)
    )


def scheduler_backlog(figures: Iterable[Sample]) -> int:
    """Return how many of slurmctld's figures (sdiag) are over their limits."""
    limits = {
        **dict.fromkeys(("agent_queue", "database_queue", "server_threads"), BACKLOG),
        "main_last_cycle_seconds": CYCLE_S,
    }
    return sum(each.value > limits.get(each.labels["figure"], math.inf) for each in figures)


def losses_not_finite(samples: Iterable[Sample]) -> int:
    """Return the number of runs whose newest loss is not finite."""
    return sum(sample.name == "training_loss_is_finite" and not sample.value for sample in samples)


def runs_without_step(samples: Iterable[Sample]) -> int:
    """Return the number of runs whose next step is STEPS usual ones late, and NO_STEP_S at least."""
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for sample in samples:
        rows.setdefault(tuple(sample.labels.values()), {})[sample.name] = sample.value
    now = time.time()
    return sum(
        now - row["training_row_seconds"] > max(STEPS * row["training_row_interval_seconds"], NO_STEP_S)
        for row in rows.values()
        if {"training_row_seconds", "training_row_interval_seconds"} <= row.keys()
    )


def idle_in_job(gpus: Iterable[Gpu]) -> int:
    """Return 1 if this node's GPUs have been idle in a running job for IDLE_S, else 0."""
    busy = [value for gpu in gpus if (value := gpu.number("utilization.gpu")) is not None]
    if not busy or max(busy) >= 100 * IDLE_RATIO or not _runs_a_job():
        IDLE_SINCE.unlink(missing_ok=True)
        return 0
    if not IDLE_SINCE.exists():
        IDLE_SINCE.touch()
    return int(time.time() - IDLE_SINCE.stat().st_mtime >= IDLE_S)


def _runs_a_job() -> bool:
    """Return True if a job's step runs here, as health/judge-node.sh sees it."""
    asked = ["pgrep", "--full", r"slurmstepd: \["]
    return subprocess.run(asked, check=False, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S).returncode == 0


def fatal_xids(gpus: list[Gpu]) -> int:
    """Return the number of XIDs since boot that take a reset or another GPU."""
    return sum(int(sample.value) for sample in xid_samples(gpus) if sample.labels["class"] == "fatal")


def fabric_not_ready(gpus: list[Gpu], uptime: Path = Path("/proc/uptime")) -> int:
    """Return the number of GPUs outside the NVLink fabric, once the node has run for FABRIC_S."""
    if float(uptime.read_text(encoding="ascii").split()[0]) < FABRIC_S:
        return 0
    return sum(sample.name == "gpu_fabric_ready" and not sample.value for sample in gpu_samples(gpus))
