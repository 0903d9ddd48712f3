"""The soak: a busy cluster by seed. Tries the seeds that soak.tsv does not have, and sums up all of them."""

import csv
import subprocess
import sys

from bench.measuring import page
from bench.measuring.programs import BaselineError
from bench.measuring.result import Result, Row, at_least, at_most

SCALED, PARALLELCLUSTER = (1, 180), (181, 200)
"""First and last seed with Slurm's time-outs a tenth of ParallelCluster's, and with its own."""
TITLE = f"{PARALLELCLUSTER[1]} seeds of jobs of two users on 32 busy nodes that fail"
FILE = page.RESULTS / "soak.tsv"
_OF_BOUND, _RARE, _LONGEST_S = 0.9, 10, 180


def measure() -> Result:
    """Continue where the file ends, seed by seed."""
    rows = [*_rows(SCALED), *_rows(PARALLELCLUSTER, "parallelcluster")]
    return Result(
        rows=rows,
        notes=[
            "A seed: 12 jobs that want more than the 32 nodes, and for a minute one of ten faults every 2 to "
            "8 s: ranks that die or hang, nodes lost, cut off or drained, a prolog that refuses, requeues, "
            "slurmctld's restarts and reconfigurations, and a full disk. A job finished once if its metrics "
            "have each step once with the loss of an undisturbed run, and no start began before a checkpoint "
            "that the run had, or after its end.",
            "Goodput: steps that count, as a share of those that undisturbed runs make in the same "
            "node-seconds. Bound: 1 - (d/T + T/2M + R/M), T = sqrt(2dM), from the seed's own mean seconds of "
            f"a save (d), of a restart (R) and between interruptions (M), where M >= {_RARE} R.",
            f"Seeds {SCALED[0]} to {SCALED[1]} have SlurmdTimeout and KillWait a tenth of ParallelCluster's. "
            "All have the cluster's requeue_delay, which replaces cred_expire. "
            "Slurm, job.slurm and two users are real. The nodes are processes of one machine; prologs only "
            "refuse, there is no epilog and no root service of a node.",
            "The seeds of soak.tsv ran up to five at once, beside other work, which lengthens them. Seeds "
            "59, 116 and 150 ran again after fixes of the faults that they found, 90 and 109 after a fix of "
            "the judge, and 200 since a job stayed COMPLETING after four restarts of Slurm 22.05's "
            "controller in half a minute. In the longest two that were looked at, a restart of the "
            "controller had lost the launch of a job, which Slurm 22.05 takes back after four minutes.",
        ],
    )


def _rows(seeds: tuple[int, int], *constants: str) -> list[Row]:
    first, last = seeds
    command = [sys.executable, "-m", "tests.slow.assets.training.soak", str(FILE), str(first), str(last)]
    if subprocess.run([*command, *constants], check=False).returncode:
        raise BaselineError(f"the soak of the seeds {first} to {last} failed")
    with FILE.open(newline="") as stream:
        results = [row for row in csv.DictReader(stream, delimiter="\t") if first <= int(row["seed"]) <= last]
    time_outs = "as ParallelCluster's" if constants else "a tenth"
    named = f"{len(results)} of {last - first + 1} seeds with Slurm's time-outs {time_outs}"
    if not results:
        return [Row(name=named, goal="all", measured="not run: their turn has not come", verdict="not run")]
    wrong = [row["seed"] for row in results if row["wrong"]]
    rare = [row for row in results if float(row["between_s"]) >= _RARE * float(row["restart_s"])]
    shares = [float(row["goodput"]) / float(row["bound"]) for row in rare]
    longest = max(int(row["seconds"]) for row in results)
    return [
        Row(
            name=f"{named}: all jobs finished once",
            measured=f"all but {', '.join(wrong)}" if wrong else "all",
            goal="all",
            verdict="missed" if wrong else "met",
        ),
        at_least(f"their goodput, against the bound, where M >= {_RARE} R", shares, _OF_BOUND),
        at_most("their longest", [longest], _LONGEST_S, unit=" s"),
    ]
