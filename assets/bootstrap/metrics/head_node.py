"""Metrics of the head node: Slurm's nodes, and with --textfiles jobs, training, storage and spend, too.

    python3 head_node.py --cluster NAME --region REGION --state FOLDER --runs FOLDER [--textfiles FOLDER ...]

CloudWatch gets the nodes of each partition by state every two minutes. The same reading, and more, goes into
text files for node_exporter, and the addresses of the nodes into a file of targets for Prometheus. Called by
a timer (steps/85-start-timers.sh).
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudwatch
from command import output_of

# The bundle's training/ has trainkit, whose reading part needs only the standard library.
sys.path.append(str(Path(__file__).resolve().parents[2] / "training"))

from host import host_samples
from slurm import Job, Node, read_jobs, read_nodes
from slurm_jobs import job_samples, sdiag_samples
from slurm_nodes import STATES, braked_checks, counts, node_samples, scrape_targets
from spend import spend_samples
from textfile import Reader, Sample, replace, write_all
from training import training_samples

EXPORTER_PORT = 9100


# Read once for both stores.
@functools.cache
def nodes() -> list[Node]:
    """Return all nodes, those of several partitions in each."""
    return read_nodes("--all", "--Node")


@functools.cache
def jobs() -> list[Job]:
    """Return the pending and running jobs, with each element of an array separately."""
    return read_jobs("--all", "--array")


def metrics_of(found: list[Node]) -> list[cloudwatch.Metric]:
    """Return one metric for each partition and state; a state without nodes is 0."""
    return [
        cloudwatch.Metric("Nodes", [float(states[state])], "Count", {"Partition": partition, "State": state})
        for partition, states in counts(found).items()
        for state in STATES
    ]


def storage_samples(folders: list[str]) -> Iterator[Sample]:
    """Yield size and free space of each folder's file system; `stat` is ended when one does not answer."""
    for folder in folders:
        counted = output_of("timeout", "10", "stat", "--file-system", "--format=%S %b %a %c %d", folder)
        block, size, free, files, files_free = (int(each) for each in counted.split())
        labels = {"folder": folder}
        yield Sample("storage_size_bytes", size * block, labels)
        yield Sample("storage_free_bytes", free * block, labels)
        yield Sample("storage_files", files, labels)
        yield Sample("storage_files_free", files_free, labels)


def readers(asked: argparse.Namespace) -> dict[str, Reader]:
    """Return the readers of the text files; those that touch shared file systems come last."""
    state = Path(asked.state)
    return {
        "host": host_samples,
        "slurm-nodes": lambda: node_samples(nodes()),
        "slurm-jobs": lambda: job_samples(jobs()),
        "sdiag": sdiag_samples,
        "spend": lambda: spend_samples(
            nodes(), prices=Path(asked.prices), kept=state / "spend.json", budget_usd=asked.budget_usd
        ),
        "storage": lambda: storage_samples(asked.storage),
        "training": lambda: training_samples(jobs(), runs=Path(asked.runs), kept=state / "runs.json"),
    }


def write_targets(file: Path) -> None:
    """Write Prometheus's targets; it reads the file again when it changes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace(file, json.dumps(scrape_targets(nodes(), EXPORTER_PORT), indent=1) + "\n")


def main() -> int:
    """Write and publish; return 1 if a reader failed."""
    parser = cloudwatch.parser()
    parser.add_argument("--targets", help="file for Prometheus's targets")
    parser.add_argument("--state", required=True, help="folder to which only this program writes")
    parser.add_argument("--prices", help="the bundle's prices")
    parser.add_argument("--budget-usd", type=float, help="budget of a month")
    parser.add_argument("--runs", required=True, help="folder of all runs")
    parser.add_argument("--storage", action="append", default=[], help="folder of a shared file system")
    asked = parser.parse_args()
    is_complete = True
    Path(asked.state).mkdir(parents=True, exist_ok=True)
    if asked.textfiles:
        is_complete = write_all(Path(asked.textfiles), readers(asked))
        if asked.targets:
            write_targets(Path(asked.targets))
    if cloudwatch.is_due(asked):
        # 0 is not published, since a metric costs money.
        braked = [float(number)] if (number := braked_checks()) else []
        cloudwatch.publish(
            [*metrics_of(nodes()), cloudwatch.Metric("BrakedChecks", braked, "Count")],
            cluster=asked.cluster,
            region=asked.region,
        )
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
