"""A second user and the nodes of the first one's job, each in a network namespace of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.people.attacks import ATTACKS
from rehearsal.people.world import SSHD
from training_cluster.paths import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(not SSHD.is_dir(), reason="make setup, as root, unpacks sshd"),
    pytest.mark.skipif("TRAINING_VENVS" not in os.environ, reason="make environment makes one with torch"),
]
SEEN = "".join(f"  bob cannot {ATTACKS[by].attack}\n" for by in ("private_folders", "share", "ssh", "join"))


def test_a_stranger_reaches_no_job(tmp_path: Path) -> None:
    """By a job on its node, SSH with the real sshd, or torch's init_process_group."""
    done = subprocess.run(
        [sys.executable, "-m", "rehearsal.people", str(tmp_path / "world"), "--only=nodes"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.stdout, done.stderr, done.returncode) == (SEEN, "", 0)
