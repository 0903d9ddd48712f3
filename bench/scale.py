"""Growth with many queues and many nodes."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import psutil

from bench.measuring.result import Result, Row, at_most
from bench.subjects.scale_config import NODES, QUEUES, measure_config
from bench.subjects.scale_job import WORKLOAD, JobWork, launch_s, make_shared, run_job
from bench.subjects.scale_slurm import SIZES, Allocation, BigSlurm, allocate_all
from rehearsal.local_slurm.cluster import PROGRAMS, SYSTEM_PATH

TITLE = f"{QUEUES} queues x {NODES:,} nodes, and jobs of {SIZES[-1]} nodes"
CALLS_GOAL = 1.2
_SCRIPT_GOAL_S, _LAUNCH_GOAL_S = 0.35, 0.14
"""Times of commit 76b47378, before restarts inside the allocation."""
_SMALL_JOB = 2
_FAMILY = "p5"
_NEEDED_GIB = 5
"""Memory of 960 slurmd at 2.5 MiB each, and as much again for the largest job's steps and shells."""
_PLAN = (
    "A plan for more than 1,000 nodes, which was not run:\n\n"
    "- environments in the image (image=build), because otherwise each node unpacks an archive from /fsx\n"
    "- metadata IOPS of the file system set to a fixed figure, instead of following its size\n"
    "- fewer checkpoint files than ranks: titan writes one file a rank into one folder; shard within groups "
    "of nodes, and let one group write\n"
    "- a larger head node, because slurmctld receives every node's start and every job's end\n"
    "- reserved capacity (reservations, Capacity Blocks), because EC2, not Slurm, decides how long the nodes "
    "take to start"
)


def measure() -> Result:
    """Measure the config, then Slurm."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config_rows, config_seconds = measure_config(folder)
        allocations, jobs, node_s, why_not = _slurm(folder / "slurm")
    return Result(
        rows=[
            *config_rows,
            *([*slurm_rows(allocations), *job_rows(jobs, node_s)] if jobs else [_not_run(why_not)]),
        ],
        figures={
            "config_seconds": config_seconds,
            "allocations": [asdict(each) for each in allocations],
            "jobs": [asdict(each) for each in jobs],
            "node_s": node_s,
        },
        notes=[
            f"All queues have the family {_FAMILY}. The library's load is the check by its schema in a new "
            "process, including imports, before its validators call AWS. Ours is the rendering, the check by "
            "the schema and the check by our rules.",
            "slurmctld, slurmd, sbatch and srun are real. Each node is a slurmd process on this machine, "
            "which slurmctld's ResumeProgram starts instead of an instance. The time until all nodes have "
            "registered therefore depends on this machine, and does not count. Each job starts with nodes "
            "that are powered down. On ParallelCluster, a job whose nodes are up waits up to 30 s more for "
            "slurmctld's next check; here a PrologSlurmctld notifies slurmctld.",
            "The job is the shipped job.slurm with launch.sh on every node; only the ranks are /bin/true. "
            "slurmctld itself counts the calls (sdiag). The script and srun make a fixed number of them. "
            "Each node's daemons also report the end of the step and of the job, as Slurm always does.",
            "The time of job.slurm is that of its batch script, from its first line to the job's end, "
            f"without the steps. In the job of {SIZES[-1]} nodes an srun of this benchmark only names the "
            "nodes: on a cluster each has its own cores for its launch.sh, and the cores of one machine "
            "need longer for all than Slurm waits. The time of launch.sh was measured without the others.",
            _PLAN,
        ],
    )


def _slurm(folder: Path) -> tuple[list[Allocation], list[JobWork], float, str]:
    """Return allocations, jobs, seconds of a node, and the reason if there are none. Raises SlurmError."""
    missing = [
        name for name in PROGRAMS if not shutil.which(name, path=f"{os.environ['PATH']}:{SYSTEM_PATH}")
    ]
    if missing:
        return [], [], 0.0, f"{', '.join(missing)} not found (install Slurm and munge)"
    free_gib = psutil.virtual_memory().available / 2**30
    if free_gib < _NEEDED_GIB:
        return [], [], 0.0, f"{free_gib:.0f} GiB of memory are free, {_NEEDED_GIB} needed"
    with BigSlurm(root=folder / "root", marker=("TRAINING_CLUSTER_BENCH", str(folder))) as slurm:
        allocations = allocate_all(slurm)
        variables = make_shared(folder)
        first = sum(SIZES[:-1]) + 1
        jobs = [
            run_job(slurm, first=first, nodes=nodes, variables=variables, has_steps=nodes < SIZES[-1])
            for nodes in (_SMALL_JOB, SIZES[0], SIZES[-1])
        ]
    train = Path(variables["TRAINING_SHARED"]) / "training" / WORKLOAD / "train.sh"
    return allocations, jobs, launch_s(train=train, variables=variables, nodes=SIZES[-1]), ""


def slurm_rows(allocations: Sequence[Allocation]) -> list[Row]:
    """Return rows that compare the smallest and the largest allocation."""
    least, most = allocations[0], allocations[-1]
    linear = most.nodes / least.nodes
    return [
        at_most(f"allocating {most.nodes} nodes, against {least.nodes}", [most.own_s / least.own_s], linear),
        at_most(
            f"releasing {most.nodes} nodes, against {least.nodes}",
            [most.released_s / least.released_s],
            linear,
        ),
    ]


def job_rows(jobs: Sequence[JobWork], node_s: float) -> list[Row]:
    """Return rows for the work of a job that may grow with its nodes. The largest one has no real steps."""
    small, large, largest = jobs
    calls = [sum(each.calls.values()) for each in (small, large)]
    return [
        at_most(
            f"calls to slurmctld by a job of {large.nodes} nodes, against {small.nodes} ({calls[1]} and "
            f"{calls[0]})",
            [calls[1] / calls[0]],
            CALLS_GOAL,
        ),
        at_most(
            f"extra files in the shared folder, {large.nodes} nodes against {small.nodes} (a rank's two "
            "streams)",
            [large.files - small.files],
            2 * (large.nodes - small.nodes),
            unit="",
        ),
        at_most(
            f"job.slurm with {largest.nodes} nodes ({small.nodes} nodes: {small.script_s:.2f} s)",
            [largest.script_s],
            _SCRIPT_GOAL_S,
            unit=" s",
        ),
        at_most("launch.sh, which all nodes run at the same time", [node_s], _LAUNCH_GOAL_S, unit=" s"),
    ]


def _not_run(why: str) -> Row:
    return Row(name=f"jobs of {SIZES[-1]} nodes", measured=f"not run: {why}", verdict="not run")
