"""Metrics of Slurm: the nodes of each partition by state, and the number of braked health checks.

    python3 node_states.py --cluster NAME --region REGION

Runs once a minute on the head node (steps/85-start-timers.sh).
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from pathlib import Path

import cloudwatch

# States of the dashboard. Powered-down nodes cost nothing, and are not published.
STATES = ("allocated", "idle", "powering_up", "powering_down", "down")

# sinfo's words, and the signs that follow a word (man sinfo, "NODE STATE CODES").
_OFF = ("~", "powered_down")
_STARTING = ("#", "powering_up")
_STOPPING = ("%", "!", "powering_down", "power_down")
_WORKING = ("allocated", "mixed", "completing")
_WAITING = ("idle", "planned", "reserved")


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


def read_sinfo() -> str:
    """Ask Slurm for lines of `PARTITION STATE NODES`."""
    return subprocess.run(
        ["sinfo", "--all", "--noheader", "--format", "%R %T %D"],
        check=True,
        timeout=cloudwatch.TIMEOUT_S,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


# Folder in which health/drain_limit.sh touches a file whenever a braked check does not drain a node.
VERDICTS = Path(os.environ.get("TRAINING_ROOT") or "/") / "opt/slurm/etc/training-cluster-verdicts"
WINDOW_S = 3600


def braked_checks() -> list[float]:
    """Return the number of checks braked within the last hour; no value for none, since a metric costs."""
    oldest = time.time() - WINDOW_S
    touched = [path for path in VERDICTS.glob("*/.braked-*") if path.stat().st_mtime >= oldest]
    return [float(len(touched))] if touched else []


def metrics_of(lines: str) -> list[cloudwatch.Metric]:
    """Return one metric for each partition and state of sinfo's lines; a state without nodes is 0."""
    counts: dict[str, Counter[str]] = {}
    for line in lines.splitlines():
        partition, word, nodes = line.split()
        states = counts.setdefault(partition, Counter())
        if state := state_of(word):
            states[state] += int(nodes)
    return [
        cloudwatch.Metric("Nodes", [float(found[state])], "Count", {"Partition": partition, "State": state})
        for partition, found in counts.items()
        for state in STATES
    ]


if __name__ == "__main__":
    asked = cloudwatch.arguments()
    cloudwatch.publish(
        [*metrics_of(read_sinfo()), cloudwatch.Metric("BrakedChecks", braked_checks(), "Count")],
        cluster=asked.cluster,
        region=asked.region,
    )
