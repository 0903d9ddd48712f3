"""The table of docs/rehearsal.md, as far as the code says what is emulated, and by which emulator."""

import re

from rehearsal.local_aws.emulators.moto_services import SERVICES
from rehearsal.local_aws.head_node.agent import BUFFER, MOST_BYTES, WORKERS
from rehearsal.local_slurm.node_program import node_program
from training_cluster.paths import ROOT

PAGE = (ROOT / "docs" / "rehearsal.md").read_text()
EMULATED = [cell.strip() for cell in re.findall(r"^\|[^|]+\|([^|]+)\|$", PAGE, re.MULTILINE)]
OF_MOTO = {
    "ec2": "EC2",
    "fsx": "FSx",
    "elasticfilesystem": "EFS",
    "servicequotas": "Service Quotas",
}


def _cell(words: str) -> str:
    (found,) = [str(cell) for cell in EMULATED if words in cell]
    return found


def test_services_of_moto_are_in_the_table() -> None:
    assert set(_cell(": moto").partition(": moto")[0].split(", ")) == {OF_MOTO[name] for name in SERVICES}


def test_each_node_has_the_folders_of_its_own_that_the_table_names() -> None:
    text = node_program(root=ROOT, shared=(), separate=True)
    own = set(re.findall(r"^(?:hide|mount -t tmpfs tmpfs) (/\S+)$", text, re.MULTILINE))
    assert own
    assert own <= set(re.findall(r"/[/\w]+", _cell("a slurmd process each")))


def test_the_limits_of_the_agent_are_those_of_the_page() -> None:
    assert (WORKERS, BUFFER) == (5, 5)
    assert "five commands at a time" in PAGE
    assert f"{MOST_BYTES:,} bytes with the agent's mark" in PAGE
