"""Publishes how many nodes of each Slurm partition are in which state, and how many health checks are braked.

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

# As the dashboard shows them. What is powered down is all the rest: it costs nothing, and is not published.
STATES = ("allocated", "idle", "powering_up", "powering_down", "down")

# sinfo's words, and the signs that stand behind a word (man sinfo, "NODE STATE CODES").
_OFF = ("~", "powered_down")
_STARTING = ("#", "powering_up")
_STOPPING = ("%", "!", "powering_down", "power_down")
_WORKING = ("allocated", "mixed", "completing")
_WAITING = ("idle", "planned", "reserved")


def state_of(word: str) -> str | None:
    """The state that one of sinfo's words means to us; None for a node that is powered down.

    Down is whatever takes no job: down, drained or draining, failing, in maintenance, not responding (`*`),
    and any word that is not known here.
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
    """Ask Slurm: `PARTITION STATE NODES`, a line each."""
    return subprocess.run(
        ["sinfo", "--all", "--noheader", "--format", "%R %T %D"],
        check=True,
        timeout=cloudwatch.TIMEOUT_S,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


# Of health/brake.sh, which touches a file there whenever a check that is braked lets a node by.
VERDICTS = Path(os.environ.get("TRAINING_ROOT") or "/") / "opt/slurm/etc/training-cluster-verdicts"
BRAKE_WINDOW_S = 3600


def braked_checks() -> list[float]:
    """How many checks were braked within the last hour; no value where none was, since a metric costs."""
    oldest = time.time() - BRAKE_WINDOW_S
    touched = [path for path in VERDICTS.glob("*/.braked-*") if path.stat().st_mtime >= oldest]
    return [float(len(touched))] if touched else []


def metrics_of(lines: str) -> list[cloudwatch.Metric]:
    """Turn sinfo's lines into one metric a partition and state; a state without nodes is 0."""
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
