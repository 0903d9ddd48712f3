"""Events of a cluster, handed to the program that does on this machine what the head node does on AWS.

A rehearsal that is left running names the program in the file LocalAwsAddress.head_node_program
(rehearsal/head_node.py), so that its local Slurm follows what is deployed. Elsewhere an event has no effect.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Literal

from rehearsal.local_aws.address import LocalAwsAddress

Event = Literal["create", "update", "stop-fleet", "start-fleet", "delete"]


def report(address: LocalAwsAddress, cluster_name: str, event: Event) -> str:
    """Run the program for an event, and wait for it; return the reason of its failure, or an empty text."""
    if not address.head_node_program.exists():
        return ""
    command = [*json.loads(address.head_node_program.read_text()), cluster_name, event]
    with address.head_node_log.open("a") as log:
        print("$", *command, file=log, flush=True)
        done = subprocess.run(
            command,
            env=dict(os.environ) | address.client_variables(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stderr, file=log)
    if done.returncode == 0:
        return ""
    return done.stderr.strip() or f"{address.head_node_log}: the program ended with code {done.returncode}"
