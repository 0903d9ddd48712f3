"""Events of a cluster reach the program of a kept rehearsal, and its failure has a reason."""

import json
import sys
import time
from pathlib import Path

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.head_node.events import report

_PROGRAM = """
import os, sys
print(*sys.argv[1:], os.environ["AWS_ENDPOINT_URL"])
if sys.argv[2] == "update":
    sys.exit("Slurm refuses this")
"""


def test_without_a_kept_rehearsal_an_event_has_no_effect(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    assert report(address, "training", "update") == ""
    assert list(tmp_path.iterdir()) == []


def test_the_program_learns_the_cluster_and_the_event_and_its_failure_is_the_reason(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    address.head_node_program.write_text(json.dumps([sys.executable, "-c", _PROGRAM]))
    assert report(address, "training", "create") == ""
    assert "training create https://localhost:4566\n" in address.head_node_log.read_text()
    assert report(address, "training", "update") == "Slurm refuses this"


def test_a_program_that_hangs_is_interrupted_and_its_processes_end(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    hanging = (
        "import subprocess, sys\ntry: subprocess.run(['sleep', '600'])\nfinally: print('undone', flush=True)"
    )
    address.head_node_program.write_text(json.dumps([sys.executable, "-c", hanging]))
    begun = time.monotonic()
    said = report(address, "training", "update", timeout_s=1)
    assert said.startswith("event update did not finish within 1 s"), said
    assert str(address.head_node_log) in said
    assert time.monotonic() - begun < 30
    assert "undone" in address.head_node_log.read_text()
