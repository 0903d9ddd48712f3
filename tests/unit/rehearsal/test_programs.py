"""The `aws` of a rehearsal's nodes: theirs is ours, and a person's own is not hidden."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.local_aws.address import tools_path
from training_cluster.paths import ROOT


@pytest.mark.slow
def test_a_rehearsals_nodes_have_the_pinned_aws_cli() -> None:
    requirements = (ROOT / "requirements-dev.txt").read_text()
    pinned = re.search(r"^awscli==(.+)$", requirements, re.MULTILINE)
    assert pinned
    said = subprocess.run(
        [str(shutil.which("aws", path=tools_path())), "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith(f"aws-cli/{pinned[1]} ")


def test_an_activated_environment_hides_no_aws_cli_of_a_person() -> None:
    assert not Path(sys.executable).with_name("aws").exists()
