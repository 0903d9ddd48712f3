"""Nodes of the local Slurm as several hosts with several users."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.local_slurm import LocalSlurm
from tests.slow.assets.training.training import NODES, local_slurm

pytestmark = [pytest.mark.slow, pytest.mark.root]

USER = "nobody"
AS_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# Two nodes write at the same time, and then look.
LOOK = (
    "for folder in /tmp /dev/shm {tmp}; do echo $SLURMD_NODENAME >$folder/mine; done; "
    "sleep 1; echo $SLURMD_NODENAME $(cat /tmp/mine /dev/shm/mine {tmp}/mine); ls {shared}; sleep 1"
)


@pytest.fixture(scope="module")
def slurm() -> Iterator[LocalSlurm]:
    """A Slurm in a folder below /tmp, which other users can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        tmp = root / "tmp"
        tmp.mkdir()
        with local_slurm(root, mark="hosts", second_user=USER, private=[tmp]) as started:
            if not started.has_separate_nodes:
                pytest.skip("this machine refuses namespaces")
            started.layout.jobs.chmod(0o1777)
            yield started


def _submit(slurm: LocalSlurm, *argv: str) -> int:
    done = subprocess.run(
        [*AS_USER, "sbatch", "--parsable", *argv],
        env=slurm.user_env(),
        cwd=slurm.layout.jobs,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_each_node_has_its_own_tmp(slurm: LocalSlurm) -> None:
    (slurm.layout.root / "shared").mkdir()
    (slurm.layout.root / "shared" / "of-all").touch()
    tmp = slurm.layout.root / "tmp"
    script = f"srun --mpi=none bash -c '{LOOK.format(shared=slurm.layout.root / 'shared', tmp=tmp)}'"
    lines = list[str]()
    slurm.wait(slurm.submit(["--nodes=2", "--wrap", script]), timeout_s=180, on_line=lines.append)
    assert sorted(lines) == sorted([*(f"{node} {node} {node} {node}" for node in NODES), "of-all", "of-all"])
    assert not Path("/tmp/mine").exists()
    assert not Path("/dev/shm/mine").exists()
    assert not any(tmp.iterdir())


def test_second_user_has_no_power_over_others(slurm: LocalSlurm) -> None:
    ours = slurm.submit(["--wrap", "sleep 600"])
    theirs = slurm.wait(
        _submit(slurm, "--wrap", f"id -un; scancel {ours}; cat {slurm.layout.root}/munge/key"), timeout_s=180
    )
    said = theirs.output.read_text()
    assert said.splitlines()[0] == USER
    assert "Access/permission denied" in said
    assert "munge/key: Permission denied" in said
    assert slurm.job_state(ours) in ("RUNNING", "PENDING", "CONFIGURING")
    slurm.cancel(ours)
