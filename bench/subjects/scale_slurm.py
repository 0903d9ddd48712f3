"""A real slurmctld with 1,000 cloud nodes: the time to allocate and to release the nodes of a job.

`python -m bench.subjects.scale_slurm HOSTS` is slurmctld's ResumeProgram: it starts a slurmd for each node,
in place of EC2 and the boot of an instance. The environment holds SLURM_CONF and the benchmark's marker.
"""

import datetime
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from rehearsal.local_slurm import LocalSlurm, NodeSet, NodeShape, Partition, SlurmError
from rehearsal.local_slurm.cluster import SYSTEM_PATH
from rehearsal.local_slurm.power import BOOT_S
from rehearsal.processes import name_of
from training_cluster.cluster.config import JOB_SETTINGS
from training_cluster.paths import ROOT

NODES = 1000
SIZES = (64, 128, 256, 512)
"""Nodes of the jobs, which run one after the other on different nodes: 960 of the 1,000."""
PARTITION = "gpu"
_RESOURCE = NodeSet(
    queue=PARTITION,
    name="p5",
    instance_types=("p5.48xlarge",),
    static=0,
    dynamic=NODES,
    shape=NodeShape(vcpus=192, memory_mib=2_000_000),
)
# With requeue_delay, this Slurm's credentials end after 6 s (see rehearsal.local_slurm.conf); to start 512
# launch.sh takes the cores of one machine longer. Nothing is requeued here.
_SETTINGS = dict(JOB_SETTINGS) | {
    "SchedulerParameters": re.sub(r"requeue_delay=\d+,", "", str(JOB_SETTINGS["SchedulerParameters"]))
}
_TIMEOUT_S, _POLL_S = 600, 0.1
_QUIET_S = 4.0
"""Seconds after its start in which slurmctld gives no job a node."""
_LOGGED = re.compile(r"^\[(?P<time>[^\]]+)\] (?P<said>.*)$")


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Times of the allocation of one job, in seconds."""

    nodes: int
    chosen_s: float
    """Time from sbatch until slurmctld has chosen the nodes and started them."""
    running_s: float
    """Time from the last registration until the job runs."""
    released_s: float
    """Time from scancel until all nodes are idle."""

    @property
    def own_s(self) -> float:
        """slurmctld's own time: choosing the nodes, and starting the job."""
        return self.chosen_s + self.running_s


class BigSlurm(LocalSlurm):
    """A local Slurm with 1,000 nodes, all powered down; each becomes a slurmd here when a job needs it."""

    def __init__(self, *, root: Path, marker: tuple[str, str]) -> None:
        super().__init__(
            root=root,
            partitions=[Partition(name=PARTITION, node_sets=(_RESOURCE,))],
            marker=marker,
            settings=(_SETTINGS,),
            suspend_time_s=3600,
            max_node_processes=NODES,
        )
        self.layout = replace(self.layout, resume_timeout_s=600)

    def _write_files(self) -> None:
        super()._write_files()
        exports = self._identity | {"PATH": SYSTEM_PATH, "PYTHONPATH": str(ROOT)}
        lines = [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
        # slurmd inherits the output, which must go to a file when this program has ended.
        log = shlex.quote(str(self.layout.log / "power.log"))
        lines.append(f'exec {shlex.quote(sys.executable)} -m bench.subjects.scale_slurm "$1" >>{log} 2>&1')
        self.layout.resume_program.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="utf-8")

    def stop(self) -> None:
        """Kill the nodes first: LocalSlurm's search for hundreds of descendants would take a minute."""
        for process in psutil.process_iter():
            if name_of(process) == "slurmd" and process.environ().get("SLURM_CONF") == str(self.layout.conf):
                process.kill()
        super().stop()


def hosts(first: int, count: int) -> str:
    """Return a host list of consecutive nodes."""
    return f"{PARTITION}-dy-{_RESOURCE.name}-[{first}-{first + count - 1}]"


def allocate_all(slurm: BigSlurm) -> list[Allocation]:
    """Run jobs of all SIZES, each on nodes that are powered down; the nodes stay up. Raises SlurmError."""
    time.sleep(_QUIET_S)
    first, found = 1, []
    for size in SIZES:
        found.append(_allocate(slurm, first, size))
        first += size
    return found


def _allocate(slurm: BigSlurm, first: int, count: int) -> Allocation:
    where = [f"--nodelist={hosts(first, count)}", f"--nodes={count}", "--exclusive"]
    job = slurm.submit([*where, "--wrap", "sleep 3600"])
    wait_until(lambda: slurm.job_state(job) == "RUNNING", what=f"{count} nodes for job {job}")
    running = time.time()
    slurm.cancel(job)
    cancelled = time.time()
    wait_until(
        lambda: sum(state == "idle" for state in slurm.node_states().values()) == first + count - 1,
        what=f"{count} nodes of job {job} to be idle",
    )
    released = time.time()
    log = read_log((slurm.layout.log / "slurmctld.log").read_text(encoding="utf-8"))
    submitted = last_said(log, f"_slurm_rpc_submit_batch_job: JobId={job} ")
    nodes = slurm.node_names[first - 1 : first + count - 1]
    registered = max(last_said(log, f"Node {node} now responding ") for node in nodes)
    return Allocation(
        nodes=count,
        chosen_s=last_said(log, *chosen(job)) - submitted,
        running_s=running - registered,
        released_s=released - cancelled,
    )


def read_log(text: str) -> list[tuple[float, str]]:
    """Parse slurmctld's log into seconds since the epoch and messages."""
    found = [match for line in text.splitlines() if (match := _LOGGED.match(line))]
    return [
        (datetime.datetime.fromisoformat(match["time"]).timestamp(), match["said"] + " ") for match in found
    ]


def last_said(log: Sequence[tuple[float, str]], *begins: str) -> float:
    """Return the time of the last message with one of these beginnings. Raises SlurmError if none has."""
    for when, said in reversed(log):
        if said.startswith(begins):
            return when
    raise SlurmError(f"slurmctld's log has no line that begins with {begins!r}.")


def chosen(job: int) -> tuple[str, str]:
    """Return the messages with which slurmctld reports the nodes chosen for a job."""
    return f"sched: Allocate JobId={job} ", f"sched/backfill: _start_job: Started JobId={job} "


def wait_until(done: Callable[[], bool], *, what: str) -> None:
    """Poll until the condition holds. Raises SlurmError when it takes too long."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not done():
        if time.monotonic() > deadline:
            raise SlurmError(f"Waited {_TIMEOUT_S} s for {what}.")
        time.sleep(_POLL_S)


def _start(node: str) -> None:
    # -b reports that the node has booted, which ends its state "powering up".
    subprocess.run(["slurmd", "-N", node, "-b"], check=True, stdin=subprocess.DEVNULL)


def main(host_list: str) -> None:
    """Start the nodes, as many at a time as there are cores."""
    # slurmctld starts its programs with SIGTERM blocked, and a slurmd that inherits this never ends.
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    hostnames = subprocess.run(
        ["scontrol", "show", "hostnames", host_list], check=True, text=True, stdout=subprocess.PIPE
    )
    time.sleep(BOOT_S)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_start, hostnames.stdout.split()))


if __name__ == "__main__":
    main(sys.argv[1])
