"""Tells Slurm when EC2 takes the nodes of the cluster's Capacity Blocks.

    python3 block_ends.py REGION

Called by: the timer training-cluster-blocks (steps/85-start-timers.sh), as root, on the head node, every two
minutes. Safe to run again. Environment: PATH with Slurm's programs and aws; TRAINING_ROOT. Python 3.9 and
later, standard library only. The head node may call DescribeCapacityReservations, as clustermgtd does.

EC2 begins to terminate a block's instances 30 minutes before its end, and tells no instance of it. So the
nodes are reserved in Slurm from LEAD before the end on, AHEAD of that: no job starts that would run into it.
Slurm takes a job without a time limit for one of a year, so it is not longer ahead. When the reservation
begins, nodes with jobs drain, at which their own root service (node_service.py) signals the jobs. Idle nodes
do not, since clustermgtd would replace them. It deletes only reservations whose names begin with `pcluster-`,
and lets its own overlap them (flags=maint).
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

LEAD, EC2_BEGINS, AHEAD = (datetime.timedelta(minutes=number) for number in (45, 30, 60))
REASON = "training-cluster: EC2 takes it: "
TIMEOUT_S = 60
_TIME = "%Y-%m-%dT%H:%M:%S"
_CONFIG = "etc/parallelcluster/slurm_plugin/fleet-config.json"


def blocks(config: Path) -> dict[str, dict[str, str]]:
    """Return the patterns of the names of each block's nodes, by queue, as clustermgtd reads them."""
    found: dict[str, dict[str, str]] = {}
    for queue, resources in json.loads(config.read_text()).items():
        for name, resource in resources.items():
            if resource.get("CapacityType") == "capacity-block":
                patterns = found.setdefault(resource["CapacityReservationId"], {})
                pattern = rf"{re.escape(queue)}-(st|dy)-{re.escape(name)}-\d+"
                patterns[queue] = f"{patterns[queue]}|{pattern}" if queue in patterns else pattern
    return found


def output_of(*command: str, check: bool = True) -> str:
    """Return what a program prints. Raises OSError or subprocess.SubprocessError if it fails."""
    done = subprocess.run(command, check=check, timeout=TIMEOUT_S, stdout=subprocess.PIPE, text=True)
    return done.stdout


def ends(ids: list[str], region: str) -> dict[str, datetime.datetime]:
    """Return when the blocks end, in local time, which Slurm's programs take."""
    said = output_of(
        *("aws", "ec2", "describe-capacity-reservations", "--region", region, "--output", "json"),
        *("--filters", "Name=state,Values=active", "--query", "CapacityReservations[?EndDate]"),
    )
    return {
        each["CapacityReservationId"]: datetime.datetime.fromisoformat(
            each["EndDate"].replace("Z", "+00:00")  # Python 3.9 and 3.10
        ).astimezone()
        for each in json.loads(said)
        if each["CapacityReservationId"] in ids
    }


def reserve(block: str, nodes: list[str], end: datetime.datetime, now: datetime.datetime) -> None:
    """Reserve the nodes for the end of their block, if it is near; it may have been extended by days."""
    name = f"training-cluster-{block}"
    # Slurm refuses a time that has passed.
    begins = max(end - LEAD, now + datetime.timedelta(seconds=5))
    known = output_of("scontrol", "show", "reservation", "--oneliner", name, check=False)
    is_near = end - LEAD - AHEAD <= now < end - EC2_BEGINS
    if is_near and f" EndTime={end:{_TIME}} " in known and f" NodeCnt={len(nodes)} " in known:
        return
    if known.startswith("ReservationName="):
        output_of("scontrol", "delete", f"ReservationName={name}")
    if not is_near:
        return
    output_of(
        *("scontrol", "create", f"ReservationName={name}", f"Nodes={','.join(nodes)}", "Users=root"),
        *(f"StartTime={begins:{_TIME}}", f"EndTime={end:{_TIME}}", "Flags=maint,ignore_jobs"),
    )


def drain(block: str, nodes: list[str], end: datetime.datetime) -> None:
    """Drain those of the nodes that have jobs; others may drain already, for another reason."""
    busy = output_of(
        *("sinfo", "--noheader", "--all", "--Node", f"--nodes={','.join(nodes)}", "--states=allocated,mixed"),
        *("--format=%N %E",),
    )
    lines = (line.partition(" ") for line in busy.splitlines())
    names = sorted({name for name, _, reason in lines if not reason.startswith(REASON)})
    if names:
        reason = f"{REASON}its Capacity Block {block} ends at {end:%H:%M}"
        output_of("scontrol", "update", f"nodename={','.join(names)}", "state=drain", f"reason={reason}")


def main(region: str) -> None:
    """Reserve and drain the nodes of all blocks that end soon."""
    patterns = blocks(Path(os.environ.get("TRAINING_ROOT") or "/", _CONFIG))
    if not patterns:
        return
    names = set(output_of("sinfo", "--noheader", "--all", "--Node", "--format=%N").split())
    now = datetime.datetime.now().astimezone()
    for block, end in ends(sorted(patterns), region).items():
        pattern = re.compile("|".join(patterns[block].values()))
        if nodes := sorted(filter(pattern.fullmatch, names)):
            reserve(block, nodes, end, now)
            if end - LEAD <= now < end - EC2_BEGINS:
                drain(block, nodes, end)


if __name__ == "__main__":
    main(sys.argv[1])
