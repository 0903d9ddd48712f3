"""This node's root service: hears that EC2 takes it, drains it, and lets jobs save; checks it for jobs.

Where several people share the cluster, it also gives each of them credentials (credentials.py).

    python3 node_service.py

Called by: the unit training-cluster-node (steps/85-start-timers.sh), as root, on compute nodes. Safe to run
again. Environment: PATH with Slurm's programs; AWS_EC2_METADATA_SERVICE_ENDPOINT and SLURMD_NODENAME (several
nodes on one machine). Python 3.9 and later, standard library only.

Slurm has the state of the node: job.slurm and block_ends.py, which drains nodes at the end of a Capacity
Block, are on other nodes. clustermgtd drains a node as soon as it has a scheduled event, weeks before, and
replaces it when its job has ended; it signals no job.

Between two starts, job.slurm asks each of its nodes by a Unix socket whether it is healthy: the checks need
root (nodes.sh). Only users with a job on the node are answered, with the reasons why it is not.
"""

from __future__ import annotations

import email.utils
import json
import os
import re
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path

import credentials

ENDPOINT = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
REASON = "training-cluster: EC2 takes it: "
POLL_S, ASK_S, TIMEOUT_S, JUDGE_S = 5, 60, 20, 60
"""Seconds between two looks for a notice and two questions to Slurm, and of Slurm's programs and checks."""
JUDGE = Path(__file__).parents[1] / "health" / "judge-node.sh"
LEAD_S = 900
"""Seconds before a scheduled event at which jobs save: more than ParallelCluster's KillWait."""
# Not of the batch script: job.slurm starts again, and other scripts end with their steps. `watch` is the step
# with which job.slurm notices that its node is lost, on all its nodes. A name may have line ends.
_STEP = re.compile(r"(?P<step>[\d_+]+\.\d+) (?P<age>\S+) (?P<nodes>\S+) (?!watch$)")
_YOUNG = re.compile(rf"0:0[0-{POLL_S - 1}]")
# The metadata service is on this machine, and not behind a proxy.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def notice() -> str:
    """Return what EC2 is about to do with this instance, and when; nothing while it says nothing."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(ASK_S)}
    token = _ask("api/token", ttl, "PUT")
    if not token:
        return ""
    headers = {"X-aws-ec2-metadata-token": token}
    if spot := _ask("meta-data/spot/instance-action", headers):
        told = json.loads(spot)
        return f"spot {told['action']} at {told['time']}"
    for event in json.loads(_ask("meta-data/events/maintenance/scheduled", headers) or "[]"):
        begins = email.utils.parsedate_to_datetime(event["NotBefore"]).timestamp()
        if event["State"] == "active" and begins - time.time() <= LEAD_S:
            return f"{event['Code']} at {event['NotBefore']}"
    return ""


def _ask(path: str, headers: dict[str, str], method: str = "GET") -> str:
    address = f"{ENDPOINT}/latest/{path}"
    request = urllib.request.Request(address, headers=headers, method=method)  # noqa: S310 - of this machine
    try:
        with _opener.open(request, timeout=2) as answer:
            return str(answer.read().decode())
    except OSError:  # 404 while there is none
        return ""


def node_name() -> str:
    """Return this node's name in Slurm, as health/judge-node.sh does."""
    named = Path(os.environ.get("TRAINING_ROOT") or "/", "etc/parallelcluster/slurm_plugin/slurm_nodename")
    if name := os.environ.get("SLURMD_NODENAME"):
        return name
    return named.read_text().strip() if named.exists() else os.uname().nodename.partition(".")[0]


def slurm(*command: str) -> str:
    """Return what a program of Slurm prints. Raises OSError or subprocess.SubprocessError if it fails."""
    done = subprocess.run(command, check=True, timeout=TIMEOUT_S, stdout=subprocess.PIPE)
    return done.stdout.decode(errors="replace")


class Node:
    """This node in Slurm."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._drained_for = ""
        self._told: set[str] = set()
        self._ask_at = 0.0

    def look(self) -> None:
        """Drain the node at a new notice, and signal its steps while it drains because EC2 takes it."""
        if (found := notice()) and found != self._drained_for:
            slurm("scontrol", "update", f"nodename={self.name}", "state=drain", f"reason={REASON}{found}")
            print(f"drained: {REASON}{found}", flush=True)
            self._drained_for, self._ask_at = found, 0.0
        if time.monotonic() < self._ask_at:
            return
        taken = re.search(
            rf" State=\S*DRAIN.* Reason={REASON}(.*)",
            slurm("scontrol", "show", "node", "--oneliner", self.name),
        )
        is_block = taken is not None and "Capacity Block" in taken[1]
        is_soon = taken is not None and (self._tell(is_first=is_block) or not is_block)
        self._ask_at = time.monotonic() + (POLL_S if is_soon else ASK_S)

    def _tell(self, *, is_first: bool) -> bool:
        """Send SIGTERM to each step once, but not before its tasks can have started; True while one is young.

        Args:
            is_first: True to leave a step to its first node, since EC2 takes all nodes of a block.
        """
        query = ("squeue", "--noheader", "--all", "--steps", f"--nodelist={self.name}")
        steps = set(slurm(*query, "--format=%i").split())
        found = map(_STEP.match, slurm(*query, "--format=%i %M %N %j").split("\n"))
        new = [each for each in found if each and each["step"] in steps - self._told]
        for each in new:
            if _YOUNG.fullmatch(each["age"]):
                continue
            self._told.add(each["step"])
            if is_first and slurm("scontrol", "show", "hostnames", each["nodes"]).split()[0] != self.name:
                continue
            try:  # without --ctld it asks all nodes of the job, and fails at those without the step
                slurm("scancel", "--ctld", "--signal=TERM", each["step"])
                print(f"sent SIGTERM to step {each['step']}", flush=True)
            except (OSError, subprocess.SubprocessError) as error:  # it has just ended
                print(f"no SIGTERM to step {each['step']}: {error}", file=sys.stderr, flush=True)
        return any(each["step"] not in self._told for each in new)


class Answer(socketserver.StreamRequestHandler):
    """Answer to a user with a job on this node: why it is unhealthy; nothing if it is healthy."""

    _one, _few = threading.Lock(), threading.BoundedSemaphore(8)

    def handle(self) -> None:
        """Check the node as before a job, for one user after the other; not for too many at once."""
        if self._few.acquire(blocking=False):
            try:
                self._answer()
            finally:
                self._few.release()

    def _answer(self) -> None:
        credentials = self.request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, uid, _ = struct.unpack("3i", credentials)
        name = Path(str(self.server.server_address)).stem
        if not slurm("squeue", "--noheader", "--all", f"--nodelist={name}", f"--user={uid}", "--format=%i"):
            return
        env = os.environ | {"SLURMD_NODENAME": name}
        with self._one:
            judge = ["bash", str(JUDGE), "asked"]
            done = subprocess.run(judge, env=env, stdout=subprocess.PIPE, timeout=JUDGE_S, check=False)
        self.wfile.write(done.stdout)


def listen(name: str) -> socketserver.ThreadingUnixStreamServer:
    """Answer in the background; every user may ask."""
    folder = Path(os.environ.get("TRAINING_ROOT") or "/", "run/training-cluster")
    file = Path(f"{name}.health")
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)  # a socket's path has at most 107 bytes
    file.unlink(missing_ok=True)
    server = socketserver.ThreadingUnixStreamServer(str(file), Answer)
    file.chmod(0o666)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    """Look until the unit is stopped. A slurmctld that does not answer is asked again."""
    node = Node(node_name())
    listen(node.name)
    try:
        credentials.serve()
    except OSError as error:
        print(f"no user of this node gets credentials: {error}", file=sys.stderr, flush=True)
    while True:
        try:
            node.look()
        except (OSError, subprocess.SubprocessError, HTTPException, ValueError, KeyError, TypeError) as error:
            print(f"tried again in {POLL_S} s: {error}", file=sys.stderr, flush=True)
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
