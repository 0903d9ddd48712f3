"""Tells Slurm when EC2 takes the nodes of the cluster's Capacity Blocks.

    python3 block_ends.py REGION

Called by: the timer training-cluster-blocks (steps/85-start-timers.sh), as root, on the head node, every two
minutes. Safe to run again. Environment: PATH with Slurm's programs and aws; TRAINING_ROOT. Python 3.9 and
later, standard library only. The head node may call DescribeCapacityReservations, as clustermgtd does.

EC2 begins to terminate a block's instances 30 minutes before its end, and tells no instance of it. So the
nodes are reserved in Slurm from LEAD before the end on, a day ahead: no job starts that would run into it.
Slurm takes a job without a time limit for one of a year; such a job gets what is left. When the reservation
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
from collections.abc import Iterable
from pathlib import Path

LEAD, EC2_BEGINS, AHEAD = (datetime.timedelta(minutes=number) for number in (45, 30, 24 * 60))
REASON = "training-cluster: EC2 takes it: "
LIMITED = "training-cluster: until the Capacity Block ends"
LEAST_MIN = 10
"""Minutes that are too few for a start."""
TIMEOUT_S = 60
_FIELDS = ((0, 40), (40, 60), (60, 120), (120, 200))
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
        *("--capacity-reservation-ids", *ids, "--query", "CapacityReservations[?State=='active' && EndDate]"),
    )
    return {
        each["CapacityReservationId"]: datetime.datetime.fromisoformat(
            each["EndDate"].replace("Z", "+00:00")  # Python 3.9 and 3.10
        ).astimezone()
        for each in json.loads(said)
    }


def reserve(block: str, nodes: str, end: datetime.datetime) -> None:
    """Reserve the nodes for the end of their block, which may have been extended."""
    name = f"training-cluster-{block}"
    # Slurm refuses a time that has passed.
    begins = max(end - LEAD, datetime.datetime.now().astimezone() + datetime.timedelta(seconds=5))
    known = output_of("scontrol", "show", "reservation", "--oneliner", name, check=False)
    if f" EndTime={end:{_TIME}} " in known:
        return
    if known.startswith("ReservationName="):
        output_of("scontrol", "delete", f"ReservationName={name}")
    output_of(
        *("scontrol", "create", f"ReservationName={name}", f"Nodes={nodes}", "Users=root"),
        *(f"StartTime={begins:{_TIME}}", f"EndTime={end:{_TIME}}", "Flags=maint,ignore_jobs"),
    )


def limit(queues: Iterable[str], end: datetime.datetime) -> None:
    """Give jobs without a time limit, which wait because of the reservation, the time until it begins."""
    left_s = (end - LEAD - datetime.datetime.now().astimezone()).total_seconds()
    minutes = int(left_s // 60) - 2  # it does not start at once
    listed = output_of(
        *("squeue", "--noheader", "--all", "--array", "--states=PENDING", f"--partition={','.join(queues)}"),
        "--Format=JobArrayID:40,TimeLimit:20,admin_comment:60,Reason:80",
    )
    for line in listed.splitlines() if minutes >= LEAST_MIN else ():
        job, now, comment, reason = (line[at:to].strip() for at, to in _FIELDS)
        if "Reserved" in reason and (now == "UNLIMITED" or comment == LIMITED):
            output_of("scontrol", "update", f"jobid={job}", f"TimeLimit={minutes}", f"AdminComment={LIMITED}")


def drain(block: str, nodes: str, end: datetime.datetime) -> None:
    """Drain those of the nodes that have jobs."""
    busy = output_of(
        *("sinfo", "--noheader", "--all", "--Node", f"--nodes={nodes}", "--states=allocated,mixed"),
        *("--format=%N %T",),
    )
    names = sorted({line.split()[0] for line in busy.splitlines() if "drain" not in line})
    if names:
        reason = f"{REASON}its Capacity Block {block} ends at {end:%H:%M}"
        output_of("scontrol", "update", f"nodename={','.join(names)}", "state=drain", f"reason={reason}")


def main(region: str) -> None:
    """Reserve and drain the nodes of all blocks that end within a day."""
    patterns = blocks(Path(os.environ.get("TRAINING_ROOT") or "/", _CONFIG))
    if not patterns:
        return
    names = set(output_of("sinfo", "--noheader", "--all", "--Node", "--format=%N").split())
    now = datetime.datetime.now().astimezone()
    for block, end in ends(sorted(patterns), region).items():
        nodes = ",".join(
            sorted(name for name in names if re.fullmatch("|".join(patterns[block].values()), name))
        )
        if nodes and end - LEAD - AHEAD <= now < end - EC2_BEGINS:
            reserve(block, nodes, end)
            limit(patterns[block], end)
            if now >= end - LEAD:
                drain(block, nodes, end)


if __name__ == "__main__":
    main(sys.argv[1])
