"""The work that job.slurm gives to one node: launch.sh, without the other nodes on the same machine."""

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 20


@dataclass(frozen=True, kw_only=True)
class NodeWork:
    """The measured work of launch.sh on one node, medians of its starts one after the other."""

    cpu_s: float
    """CPU time of launch.sh and of what it starts, the rank (/bin/true) included."""
    wall_s: float
    """Seconds from its start to its end."""


def measure_node(*, train: Path, variables: Mapping[str, str], nodes: int, rounds: int = ROUNDS) -> NodeWork:
    """Start the train.sh of a workload as one rank of a job of `nodes` nodes, without Slurm."""
    run = Path(variables["TRAINING_SHARED"]) / "runs" / "one-node"
    # job.slurm makes these folders.
    for folder in ("logs/1-0", "flight/1-0"):
        (run / folder).mkdir(parents=True, exist_ok=True)
    job = {
        "LAUNCHER": "srun",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "12001",
        "NNODES": str(nodes),
        "NPROC_PER_NODE": "1",
        "EXPECTED_WORLD_SIZE": str(nodes),
        "RUN_DIR": str(run),
        "ACCELERATOR_KIND": "none",
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_NODEID": "1",
        "SLURM_PROCID": "1",
        "SLURM_LOCALID": "0",
        "SLURMD_NODENAME": "node-1",
    }
    env = {**os.environ, **variables, **job}
    starts = [_start(train, env) for _ in range(rounds)]
    return NodeWork(
        cpu_s=statistics.median(cpu for cpu, _ in starts),
        wall_s=statistics.median(wall for _, wall in starts),
    )


def _start(train: Path, env: Mapping[str, str]) -> tuple[float, float]:
    before, began = _cpu_s(), time.perf_counter()
    subprocess.run(["bash", train], env=env, check=True)
    return _cpu_s() - before, time.perf_counter() - began


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
