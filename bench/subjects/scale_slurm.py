"""A real slurmctld with 64 to 1,250 cloud nodes: what their start, a job's end and its own restart cost it.

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
from rehearsal.local_slurm.daemons import start_slurmctld
from rehearsal.local_slurm.power import BOOT_S
from rehearsal.processes import name_of
from training_cluster.cluster.config import JOB_SETTINGS
from training_cluster.paths import ROOT

PARTITION, RESOURCE = "gpu", "p5"
# With requeue_delay, this Slurm's credentials end after 6 s (see rehearsal.local_slurm.conf); to start
# launch.sh of all nodes takes the cores of one machine longer. Nothing is requeued here.
_SETTINGS = dict(JOB_SETTINGS) | {
    "SchedulerParameters": re.sub(r"requeue_delay=\d+,", "", str(JOB_SETTINGS["SchedulerParameters"]))
}
_TIMEOUT_S, _POLL_S = 1800, 0.5
_QUIET_S = 4.0
"""Seconds after its start in which slurmctld gives no job a node."""
_REGISTERED = re.compile(r"MESSAGE_NODE_REGISTRATION_STATUS\s+\(\s*\d+\) count:(\d+)")
_LOGGED = re.compile(r"^\[(?P<time>[^\]]+)\] (?P<said>.*)$")


@dataclass(frozen=True, kw_only=True)
class Control:
    """Costs of slurmctld with one number of nodes; CPU seconds are those of its process."""

    nodes: int
    chosen_s: float
    """Time from sbatch until slurmctld has chosen the nodes of a job on all of them and started them."""
    boot_cpu_s: float
    """CPU from sbatch until all nodes have registered and the job runs."""
    running_s: float
    """Time from the last registration until the job runs."""
    released_s: float
    """Time from scancel until all nodes are idle."""
    released_cpu_s: float
    start_s: float
    """Time from the start of slurmctld, whose nodes run, until it answers."""
    storm_cpu_s: float
    """CPU from that start until all nodes have registered again."""
    reconfigure_s: float
    """Time of scontrol reconfigure."""
    reconfigure_cpu_s: float
    """CPU from its begin until all nodes have registered again."""
    memory_mib: float
    """Resident memory afterwards."""


class BigSlurm(LocalSlurm):
    """A local Slurm whose nodes are all powered down; each becomes a slurmd here when a job needs it."""

    def __init__(self, *, root: Path, nodes: int, marker: tuple[str, str]) -> None:
        resource = NodeSet(
            queue=PARTITION,
            name=RESOURCE,
            instance_types=("p5.48xlarge",),
            static=0,
            dynamic=nodes,
            shape=NodeShape(vcpus=192, memory_mib=2_000_000),
        )
        super().__init__(
            root=root,
            partitions=[Partition(name=PARTITION, node_sets=(resource,))],
            marker=marker,
            settings=(_SETTINGS,),
            suspend_time_s=3600,
            max_node_processes=nodes,
        )
        self.layout = replace(self.layout, resume_timeout_s=_TIMEOUT_S)

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

    @property
    def controller(self) -> psutil.Process:
        """The process of slurmctld."""
        return psutil.Process(self._children[-1].pid)

    def restart_controller(self) -> float:
        """Start slurmctld again with its state; return the seconds until it answers."""
        ended = self._children.pop()
        ended.terminate()
        ended.wait()
        began = time.time()
        self._children.append(start_slurmctld(layout=self.layout, environment=self.client_env(), clean=False))
        return time.time() - began

    def registrations(self) -> int:
        """Return the number of registrations of nodes since slurmctld's start."""
        found = _REGISTERED.search(self._run(["sdiag"]))
        return int(found[1]) if found else 0

    def drain(self, node: str, reason: str) -> None:
        """Keep jobs off a node."""
        self._run(["scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}"])

    def reconfigure(self) -> float:
        """Let Slurm read its config again; return the seconds."""
        began = time.time()
        self._run(["scontrol", "reconfigure"])
        return time.time() - began


def hosts(first: int, count: int) -> str:
    """Return a host list of consecutive nodes."""
    return f"{PARTITION}-dy-{RESOURCE}-[{first}-{first + count - 1}]"


def measure_control(slurm: BigSlurm) -> Control:
    """Start all nodes by a job, end it, and restart slurmctld; the nodes stay up. Raises SlurmError."""
    time.sleep(_QUIET_S)
    count = len(slurm.node_names)
    before = _cpu_s(slurm)
    job = slurm.submit([f"--nodelist={hosts(1, count)}", "--exclusive", "--wrap", "sleep 3600"])
    wait_until(lambda: slurm.job_state(job) == "RUNNING", what=f"{count} nodes for job {job}")
    running, booted_cpu_s = time.time(), _cpu_s(slurm)
    slurm.cancel(job)
    cancelled = time.time()
    wait_until(
        lambda: set(slurm.node_states().values()) == {"idle"}, what=f"{count} nodes of job {job} to be idle"
    )
    released, released_cpu_s = time.time(), _cpu_s(slurm)
    log = read_log((slurm.layout.log / "slurmctld.log").read_text(encoding="utf-8"))
    submitted = last_said(log, f"_slurm_rpc_submit_batch_job: JobId={job} ")
    registered = last_said(log, "Node ", end=" now responding")
    start_s = slurm.restart_controller()
    wait_until(lambda: slurm.registrations() >= count, what=f"{count} nodes to register again")
    storm_cpu_s = _cpu_s(slurm)
    reconfigure_s = slurm.reconfigure()
    wait_until(lambda: slurm.registrations() >= 2 * count, what=f"{count} nodes to register after that")
    return Control(
        nodes=count,
        chosen_s=last_said(log, *chosen(job)) - submitted,
        boot_cpu_s=booted_cpu_s - before,
        running_s=running - registered,
        released_s=released - cancelled,
        released_cpu_s=released_cpu_s - booted_cpu_s,
        start_s=start_s,
        storm_cpu_s=storm_cpu_s,
        reconfigure_s=reconfigure_s,
        reconfigure_cpu_s=_cpu_s(slurm) - storm_cpu_s,
        memory_mib=slurm.controller.memory_info().rss / 2**20,
    )


def _cpu_s(slurm: BigSlurm) -> float:
    spent = slurm.controller.cpu_times()
    return spent.user + spent.system


def read_log(text: str) -> list[tuple[float, str]]:
    """Parse slurmctld's log into seconds since the epoch and messages."""
    found = [match for line in text.splitlines() if (match := _LOGGED.match(line))]
    return [
        (datetime.datetime.fromisoformat(match["time"]).timestamp(), match["said"] + " ") for match in found
    ]


def last_said(log: Sequence[tuple[float, str]], *begins: str, end: str = "") -> float:
    """Return the time of the last message with one of these beginnings. Raises SlurmError if none has."""
    for when, said in reversed(log):
        if said.startswith(begins) and end in said:
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
