"""The table of docs/rehearsal.md, as far as the code says what is emulated, and by which emulator."""

import re

from rehearsal.local_aws.emulators.moto_services import SERVICES
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
