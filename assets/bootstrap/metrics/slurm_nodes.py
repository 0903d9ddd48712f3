"""Slurm's nodes, by one call of sinfo: their states, reasons and addresses."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from command import output_of
from textfile import Sample

# States of the dashboard. Powered-down nodes cost nothing, and are not published.
STATES = ("allocated", "idle", "powering_up", "powering_down", "down")

# sinfo's words, and the signs that follow a word (man sinfo, "NODE STATE CODES").
_OFF = ("~", "powered_down")
_STARTING = ("#", "powering_up")
_STOPPING = ("%", "!", "powering_down", "power_down")
_WORKING = ("allocated", "mixed", "completing")
_WAITING = ("idle", "planned", "reserved")
# Partition, node, state, address, time and text of the reason.
_FORMAT = "%R|%N|%T|%o|%H|%E"
_LONGEST_REASON = 160


class Node(NamedTuple):
    """A node in one of its partitions."""

    partition: str
    name: str
    state: str | None
    """One of STATES; None for a powered-down node."""
    address: str
    out_since: float | None
    """Time of the reason, seconds since 1970; None without a reason."""
    reason: str


def state_of(word: str) -> str | None:
    """Return the published state for one of sinfo's words; None for a powered-down node.

    `down` includes every node that takes no job: down, drained or draining, failing, in maintenance, not
    responding (`*`), and any unknown word.
    """
    base = word.rstrip("*~#!%$@^-+").lower()
    signs = {*word[len(base) :], base}
    if signs & {*_OFF}:
        return None
    if "*" in signs or base not in (*_WORKING, *_WAITING, *_STARTING, *_STOPPING):
        return "down"
    if signs & {*_STARTING}:
        return "powering_up"
    if signs & {*_STOPPING}:
        return "powering_down"
    return "allocated" if base in _WORKING else "idle"


def read_nodes() -> list[Node]:
    """Ask Slurm for all nodes; a node of several partitions is listed once for each."""
    found = []
    for line in output_of("sinfo", "--all", "--Node", "--noheader", "--format", _FORMAT).splitlines():
        partition, name, word, address, since, reason = line.split("|", 5)
        out_since = float(since) if since.isdecimal() else None
        found.append(Node(partition, name, state_of(word), address, out_since, reason))
    return found


# Folder in which health/drain_limit.sh touches a file whenever a braked check does not drain a node.
VERDICTS = Path(os.environ.get("TRAINING_ROOT") or "/") / "opt/slurm/etc/training-cluster-verdicts"
WINDOW_S = 3600


def braked_checks() -> int:
    """Return the number of checks braked within the last hour."""
    oldest = time.time() - WINDOW_S
    return sum(path.stat().st_mtime >= oldest for path in VERDICTS.glob("*/.braked-*"))


def counts(nodes: Iterable[Node]) -> dict[str, Counter[str]]:
    """Count the nodes of each partition by state; one of powered-down nodes alone has no state."""
    found: dict[str, Counter[str]] = {}
    for node in nodes:
        states = found.setdefault(node.partition, Counter())
        if node.state:
            states[node.state] += 1
    return found


def node_samples(nodes: list[Node]) -> Iterator[Sample]:
    """Yield the samples of all nodes; a node belongs to the first partition that sinfo lists."""
    for partition, found in counts(nodes).items():
        for state in STATES:
            yield Sample("slurm_nodes", found[state], {"partition": partition, "state": state})
    for node in each_once(nodes):
        labels = {"node": node.name, "partition": node.partition}
        yield Sample("slurm_node_state", 1, {**labels, "state": str(node.state)})
        if node.state == "down" and node.out_since is not None:
            reason = node.reason[:_LONGEST_REASON]
            yield Sample("slurm_node_out_since_seconds", node.out_since, {**labels, "reason": reason})
    yield Sample("slurm_braked_health_checks", braked_checks())


def each_once(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that are not powered down, each once."""
    return list({node.name: node for node in reversed(list(nodes)) if node.state}.values())


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
