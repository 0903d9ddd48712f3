"""Growth with many queues and many nodes, up to the 1,250 of 10,000 GPUs."""

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from bench.measuring.result import Result, Row, at_most
from bench.subjects.scale_config import measure_config, measure_synth
from bench.subjects.scale_job import launch_s, make_shared, run_job
from bench.subjects.scale_metrics import measure_watch
from bench.subjects.scale_slurm import BigSlurm, measure_control
from bench.subjects.scale_tools import RANKS_PER_NODE, measure_tools
from rehearsal.local_slurm.cluster import PROGRAMS, SYSTEM_PATH

SIZES = (64, 256, 1250)
_LISTED = ", ".join(f"{size:,}" for size in SIZES)
TITLE = f"{_LISTED} nodes"
CALLS_GOAL = 1.2
GROWTH_GOAL = 1.2
"""Largest exponent of a cost that counts as linear; other load on the machine may add to one size."""
_LAUNCH_GOAL_S = 0.14
"""Time of commit 76b47378, before restarts inside the allocation."""
_SMALL_JOB = 2
_NEEDED_GIB = 12
"""Memory of 1,250 slurmd at 4 MiB each, and later of Prometheus."""
# Name, unit and digits of each cost of COSTS by its key in the figures.
_COSTS = {
    "synth_s": ("cdk synth -c nodes=N", " s", 1),
    "template_bytes": ("its templates", " bytes", 0),
    "chosen_s": ("slurmctld chooses the nodes of a job on all", " s", 2),
    "boot_cpu_s": ("slurmctld until all nodes have started and registered, CPU", " s", 2),
    "running_s": ("from the last registration until the job runs", " s", 2),
    "released_s": ("from scancel until all nodes are idle", " s", 2),
    "released_cpu_s": ("the same, slurmctld's CPU", " s", 2),
    "start_s": ("start of slurmctld while all nodes run", " s", 2),
    "storm_cpu_s": ("that start, until all nodes have registered again, CPU", " s", 2),
    "reconfigure_s": ("scontrol reconfigure", " s", 2),
    "reconfigure_cpu_s": ("the same, until all nodes have registered again, CPU", " s", 2),
    "memory_mib": ("slurmctld's memory", " MiB", 0),
    "script_s": ("job.slurm on all nodes, without its steps", " s", 2),
    "restart_s": ("a restart inside the allocation, without its steps", " s", 2),
    "status_s": ("trainctl status: the nodes", " s", 2),
    "status_characters": ("its answer by Systems Manager", " characters", 0),
    "jobs_s": ("trainctl jobs, a waiting job for 4 nodes", " s", 2),
    "jobs_characters": ("its answer by Systems Manager", " characters", 0),
    "exporter_cpu_s": ("a run of the head node's metrics, CPU", " s", 2),
    "exporter_bytes": ("its text files", " bytes", 0),
    "report_s": (f"trainctl report of a run with {RANKS_PER_NODE} ranks a node", " s", 2),
    "series": ("Prometheus: series, with the metrics of p5", "", 0),
    "watch_mib": ("Prometheus: memory after three scrapes", " MiB", 0),
    "scrape_cpu_s": ("Prometheus: CPU of a scrape of all nodes, with the rules", " s", 2),
    "top_s": ("trainctl top", " s", 2),
}


def measure() -> Result:
    """Measure the config, then each number of nodes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config_rows, config_seconds = measure_config(folder)
        costs = {size: measure_synth(folder / f"synth-{size}", nodes=size) for size in SIZES}
        more: dict[str, Any] = {}
        rows: list[Row] = []
        if not (why_not := _lacks()):
            for size in SIZES:
                costs[size] |= _one(folder / str(size), size, more)
            rows = list(job_rows(more))
    return Result(
        rows=[
            *config_rows,
            *growth_rows(costs),
            *rows,
            *([Row(name="the rest", measured=f"not run: {why_not}", verdict="not run")] if why_not else []),
        ],
        figures={"config_seconds": config_seconds, "costs": costs, **more},
        notes=_NOTES,
    )


def _lacks() -> str:
    missing = [
        name for name in PROGRAMS if not shutil.which(name, path=f"{os.environ['PATH']}:{SYSTEM_PATH}")
    ]
    if missing:
        return f"{', '.join(missing)} not found (install Slurm and munge)"
    free_gib = psutil.virtual_memory().available / 2**30
    return f"{free_gib:.0f} GiB of memory are free, {_NEEDED_GIB} needed" if free_gib < _NEEDED_GIB else ""


def _one(folder: Path, size: int, more: dict[str, Any]) -> dict[str, float]:
    """Measure one number of nodes; `more` gets what is measured at one of them only."""
    folder.mkdir()
    with BigSlurm(root=folder / "root", nodes=size, marker=("TRAINING_CLUSTER_BENCH", str(folder))) as slurm:
        found = asdict(measure_control(slurm))
        variables = make_shared(folder)
        began = run_job(slurm, size, variables, has_steps=False)
        again = run_job(slurm, size, variables, has_steps=False, failures=1)
        found |= {"script_s": began.script_s, "restart_s": again.script_s - began.script_s}
        if size == SIZES[0]:
            more["jobs"] = [asdict(run_job(slurm, nodes, variables)) for nodes in (_SMALL_JOB, size)]
            more["node_s"] = launch_s(variables=variables, nodes=SIZES[-1])
        found |= asdict(measure_tools(slurm, folder))
        names = slurm.node_names
    head = "".join(file.read_text(encoding="utf-8") for file in (folder / "textfiles").glob("*.prom"))
    watched = asdict(measure_watch(folder / "prometheus", nodes=names, head=head))
    return found | watched | {"watch_mib": watched["memory_mib"], "memory_mib": found["memory_mib"]}


def exponent(costs: Mapping[int, Mapping[str, float]], name: str) -> float:
    """Return the exponent of a cost's growth between the two largest numbers of nodes."""
    (less, small), (more, large) = ((size, each[name]) for size, each in sorted(costs.items())[-2:])
    return math.log(large / small) / math.log(more / less) if min(small, large) > 0 else 0.0


def growth_rows(costs: Mapping[int, Mapping[str, float]]) -> Iterator[Row]:
    """Yield a row for each cost, with its growth."""
    for name, (text, unit, digits) in _COSTS.items():
        if not all(name in each for each in costs.values()):
            continue
        values = ", ".join(f"{each[name]:,.{digits}f}" for each in costs.values())
        grown = exponent(costs, name)
        yield Row(
            name=text,
            goal=f"<= N^{GROWTH_GOAL:g}",
            measured=f"{values}{unit}: N^{grown:.1f}",
            verdict="met" if grown <= GROWTH_GOAL else "missed",
        )
    cut = [
        f"{size:,}" for size, each in costs.items() if each.get("status_is_cut") or each.get("jobs_is_cut")
    ]
    yield Row(
        name="answers that Systems Manager cut", measured=f"at {', '.join(cut)} nodes" if cut else "none"
    )


def job_rows(more: Mapping[str, Any]) -> Iterator[Row]:
    """Yield rows for the work of a job with real steps."""
    small, large = more["jobs"]
    calls: Sequence[int] = [sum(each["calls"].values()) for each in (small, large)]
    yield at_most(
        f"calls to slurmctld by a job of {large['nodes']} nodes, against {small['nodes']} ({calls[1]} and "
        f"{calls[0]})",
        [calls[1] / calls[0]],
        CALLS_GOAL,
    )
    yield at_most(
        f"extra files in the shared folder, {large['nodes']} nodes against {small['nodes']} (a rank's two "
        "streams)",
        [large["files"] - small["files"]],
        2 * (large["nodes"] - small["nodes"]),
        unit="",
    )
    yield at_most(
        "launch.sh, which all nodes run at the same time", [more["node_s"]], _LAUNCH_GOAL_S, unit=" s"
    )


_NOTES = [
    f"Values are those at {_LISTED} nodes, and N^e is their growth between the last two. CPU is that of "
    "one process, which other load changes less than its time.",
    "The library's load is the check by its schema in a new process, including imports, before its "
    "validators call AWS. Ours is the rendering, the check by the schema and the check by our rules.",
    "slurmctld, slurmd, sbatch and srun are real. Each node is a slurmd process on this machine, which "
    "slurmctld's ResumeProgram starts instead of an instance. The time until all nodes have registered "
    "therefore depends on this machine, and does not count. The job starts with nodes that are powered "
    "down. On ParallelCluster, a job whose nodes are up waits up to 30 s more for slurmctld's next "
    "check; here a PrologSlurmctld notifies slurmctld. ParallelCluster's own daemons on the head node, "
    "and its NFS, were not measured.",
    "The job is the shipped job.slurm with launch.sh on every node; only the ranks are /bin/true. "
    "slurmctld itself counts the calls (sdiag). The time of job.slurm is that of its batch script, from "
    "its first line to the job's end, without the steps. In the job on all nodes an srun of this "
    "benchmark only names the nodes: on a cluster each has its own cores for its launch.sh, and the "
    "cores of one machine need longer for all than Slurm waits. The first start of its ranks fails "
    "where a restart is measured.",
    "One node of 20 is drained, each with a reason of its own. The commands of trainctl go through the "
    "rehearsal's stand-in for Systems Manager; the seconds of AWS's API come on top.",
    "A node's metrics are those of a p5: of the programs that run there, with played GPUs, EFA and "
    "Lustre, and of a real node_exporter. One web server gives them to a real Prometheus every 30 s, as "
    "in a cluster, with its config and rules. Two hours of samples take more memory than three scrapes.",
    "In a cluster with users, each node of a job asks DNS for the addresses of all its nodes "
    "(peers.sh): N x N questions, which were not measured.",
]
