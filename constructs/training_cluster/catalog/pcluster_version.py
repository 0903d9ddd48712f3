"""AWS ParallelCluster's version: the one line of requirements-pcluster.txt, which pins the library."""

import re
from pathlib import Path

from training_cluster.paths import ROOT

REQUIREMENTS = ROOT / "requirements-pcluster.txt"
_PIN = re.compile(r"^aws-parallelcluster==(\d+\.\d+\.\d+)$", re.MULTILINE)


def read_pcluster_version(requirements: Path = REQUIREMENTS) -> str:
    """Read the pinned version.

    Raises:
        ValueError: the file does not pin exactly one.
    """
    found = _PIN.findall(requirements.read_text())
    if len(found) != 1:
        raise ValueError(f"{requirements}: expected one line aws-parallelcluster==X.Y.Z, found {len(found)}")
    return str(found[0])
