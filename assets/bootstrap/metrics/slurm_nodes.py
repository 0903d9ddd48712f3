"""Samples of Slurm's nodes: their states, reasons and addresses."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from slurm import Node
from textfile import Sample

# Powered-down nodes cost nothing, and are not published.
STATES = ("allocated", "idle", "powering_up", "powering_down", "down")
_LONGEST_REASON = 160

# Folder in which health/drain_limit.sh touches a file whenever a braked check does not drain a node.
VERDICTS = Path(os.environ.get("TRAINING_ROOT") or "/") / "opt/slurm/etc/training-cluster-verdicts"
WINDOW_S = 3600


def braked_checks() -> int:
    """Return the number of checks braked within the last hour."""
    oldest = time.time() - WINDOW_S
    return sum(path.stat().st_mtime >= oldest for path in VERDICTS.glob("*/.braked-*"))


def counts(nodes: Iterable[Node]) -> dict[str, Counter[str]]:
    """Count the nodes of each partition by state."""
    found: dict[str, Counter[str]] = {}
    for node in nodes:
        found.setdefault(node.partition, Counter())[node.state] += 1
    return found


def node_samples(nodes: list[Node]) -> Iterator[Sample]:
    """Yield the samples of all nodes; a node belongs to the first partition that sinfo lists."""
    for partition, found in counts(nodes).items():
        for state in STATES:
            yield Sample("slurm_nodes", found[state], {"partition": partition, "state": state})
    for node in each_once(nodes):
        labels = {"node": node.name, "partition": node.partition}
        yield Sample("slurm_node_state", 1, {**labels, "state": node.state})
        if node.state == "down" and node.out_since:
            reason = node.reason[:_LONGEST_REASON]
            yield Sample("slurm_node_out_since_seconds", node.out_since, {**labels, "reason": reason})
    yield Sample("slurm_braked_health_checks", braked_checks())


def each_once(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that are not powered down, each once."""
    return list({node.name: node for node in reversed(list(nodes)) if node.state in STATES}.values())


def scrape_targets(nodes: Iterable[Node], port: int) -> list[dict[str, object]]:
    """Return Prometheus's targets (file_sd_config): nodes whose address is not a name."""
    return [
        {
            "targets": [f"{node.address}:{port}"],
            "labels": {"node": node.name, "partition": node.partition},
        }
        for node in sorted(each_once(nodes), key=lambda each: each.name)
        if node.address != node.name
    ]
