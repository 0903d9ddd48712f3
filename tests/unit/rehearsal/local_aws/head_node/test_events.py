"""Events of a cluster reach the program of a kept rehearsal, and its failure has a reason."""

import json
import sys
from pathlib import Path

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.head_node.events import report

_PROGRAM = """
import os, sys
print(*sys.argv[1:], os.environ["AWS_ENDPOINT_URL"])
if sys.argv[2] == "update":
    sys.exit("Slurm refuses this")
"""


def test_program_learns_the_event_and_gives_reasons(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    assert report(address, "training", "create") == "", "it is not kept"
    address.head_node_program.write_text(json.dumps([sys.executable, "-c", _PROGRAM]))
    assert report(address, "training", "create") == ""
    assert "training create https://localhost:4566\n" in address.head_node_log.read_text()
    assert report(address, "training", "update") == "Slurm refuses this"
