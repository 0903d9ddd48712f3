"""Start and stop of slurmd processes, as ParallelCluster's programs start and stop instances.

slurmctld runs it through the scripts that `power_program` writes, with a minimal environment, as
the Slurm user, and with a host list such as `train-dy-p4d-[1-2]`. It uses only the standard library, since
it runs outside the package.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

GRACE_S = 5.0
BOOT_S = 1.1
"""Seconds before a node starts. slurmctld ignores a node whose boot time, in whole seconds, is before its
request, and then waits until its timeout. slurmd's count of seconds may be one ahead.
"""
POLL_S = 0.1
AWAIT_S = 120.0


def power_program(*, verb: str, environment: Mapping[str, str], root: Path, most: int) -> str:
    """Return the text of ResumeProgram (resume), SuspendProgram (suspend) or PrologSlurmctld (await)."""
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in environment.items())
    command = shlex.join([sys.executable, str(Path(__file__).resolve()), verb, str(root), str(most)])
    log = shlex.quote(str(root / "log" / "power.log"))
    nodes = '"${1:-$SLURM_JOB_NODELIST}"'
    return (
        f"#!/bin/sh\n# slurmctld calls this for some nodes.\n{exports}exec {command} {nodes} >>{log} 2>&1\n"
    )


def main(verb: str, root: Path, most: int, host_list: str) -> None:
    """Start (at most `most` at a time), stop or await the nodes of `host_list`."""
    # slurmctld starts its programs with SIGTERM blocked, and a slurmd that inherits this never ends.
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    hostnames = subprocess.run(
        ["scontrol", "show", "hostnames", host_list], check=True, text=True, stdout=subprocess.PIPE
    )
    nodes = hostnames.stdout.split()
    print(time.strftime("%H:%M:%S"), verb, *nodes, flush=True)
    if verb == "resume":
        time.sleep(BOOT_S)
        for node in nodes:
            _resume(node, root=root, most=most)
    elif verb == "suspend":
        _suspend(nodes, run=root / "run")
    else:
        _await(host_list)


def _resume(node: str, *, root: Path, most: int) -> None:
    run = root / "run"
    if (run / "stopping").exists() or _pid(run / f"{node}.pid"):
        return
    if sum(_pid(file) > 0 for file in run.glob("*.pid")) < most:
        subprocess.run([root / "node", node], check=True, stdin=subprocess.DEVNULL)
        return
    reason = f"this machine starts at most {most} nodes"
    print(f"{node}: not started, {reason}", flush=True)
    change = [f"NodeName={node}", "State=POWER_DOWN_FORCE", f"Reason={reason}"]
    subprocess.run(["scontrol", "update", *change], check=True)


def _suspend(nodes: list[str], *, run: Path) -> None:
    files = [run / f"{node}.{kind}" for node in nodes for kind in ("pid", "service")]
    _signal(files, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while any(_pid(file) for file in files) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    _signal(files, signal.SIGKILL)


def _await(host_list: str) -> None:
    """Wait until no node is powered down (~) or powering up (#); never fail, since Slurm itself times out."""
    argv = ["sinfo", "--all", "--noheader", f"--nodes={host_list}", "--format=%T"]
    deadline = time.monotonic() + AWAIT_S
    while time.monotonic() < deadline:
        states = subprocess.run(argv, check=False, text=True, stdout=subprocess.PIPE).stdout
        if states and "#" not in states and "~" not in states:
            return
        time.sleep(POLL_S)


def _signal(files: list[Path], number: signal.Signals) -> None:
    for file in files:
        if pid := _pid(file):
            os.kill(pid, number)


def _pid(file: Path) -> int:
    """Return the process id of the node's slurmd or service that `file` names; 0 if it has ended."""
    try:
        pid = int(file.read_text(encoding="ascii"))
        _, *arguments = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except (OSError, ValueError):
        return 0
    # The kernel reuses process ids. Both have the node's name as an argument, and slurmctld does not.
    return pid if file.stem in arguments else 0


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
