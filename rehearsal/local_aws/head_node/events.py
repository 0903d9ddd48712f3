"""Events of a cluster, handed to a program that does the head node's work on this machine.

A rehearsal that is left running names the program in the file LocalAwsAddress.head_node_program
(rehearsal/head_node.py), so that its local Slurm follows what is deployed. Elsewhere an event has no effect.
"""

import json
import os
import signal
import subprocess
import tempfile
from typing import Literal

from rehearsal.local_aws.address import LocalAwsAddress

Event = Literal["create", "update", "stop-fleet", "start-fleet", "delete"]


FLEET_S = 600.0
"""Time limit of the program at an event without a WaitCondition, seconds."""
_UNDO_S = 120.0


def report(address: LocalAwsAddress, cluster_name: str, event: Event, *, timeout_s: float = FLEET_S) -> str:
    """Run the program for an event, and wait for it; return the reason of its failure, or an empty text.

    A program that runs longer than `timeout_s` is interrupted with its process group, and killed if it does
    not end. Daemons that it started have their own sessions and remain.
    """
    if not address.head_node_program.exists():
        return ""
    command = [*json.loads(address.head_node_program.read_text()), cluster_name, event]
    with address.head_node_log.open("a") as log, tempfile.TemporaryFile("w+") as errors:
        print("$", *command, file=log, flush=True)
        program = subprocess.Popen(
            command,
            env=dict(os.environ) | address.client_variables(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = program.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(program)
            code = None
        errors.seek(0)
        said = errors.read().strip()
        print(said, file=log)
    if code is None:
        return f"event {event} did not finish within {timeout_s:g} s; see {address.head_node_log}"
    if code == 0:
        return ""
    return said or f"{address.head_node_log}: the program ended with code {code}"


def _end(program: subprocess.Popen[bytes]) -> None:
    """Interrupt a program, which then undoes its change of Slurm; kill it if that takes too long."""
    os.killpg(program.pid, signal.SIGINT)
    try:
        program.wait(timeout=_UNDO_S)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
