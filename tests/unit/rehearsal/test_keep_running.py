"""Variables of a rehearsed job, which reaches the local AWS, and never a real account."""

import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from rehearsal.bootstrap import job_variables
from rehearsal.keep_running import leave_running, next_steps
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm
from rehearsal.narrator import Narrator
from rehearsal.workspace import Workspace


def test_a_persons_account_does_not_reach_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "a-persons")
    slurm = LocalSlurm(root=tmp_path, partitions=(), marker=("LOCAL_SLURM_TEST", "environment"))
    assert "a-persons" not in slurm.client_env().values()


def test_jobs_ask_the_local_aws(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    variables = job_variables(Workspace(root=tmp_path), address)
    assert variables["AWS_ENDPOINT_URL"] == address.url
    assert variables["AWS_ENDPOINT_URL_S3"] == address.s3_url
    assert variables["AWS_ACCESS_KEY_ID"] == "AKIA"
    assert variables["TMPDIR"].startswith(str(tmp_path / "node")), "a node's own, not that of AWS's clients"


@pytest.mark.parametrize(("nodes", "more"), [(1, 3), (6, 8), (7, 5), (8, 6)])
def test_the_next_steps_name_nodes_that_this_machine_starts(tmp_path: Path, nodes: int, more: int) -> None:
    steps = next_steps(workspace=Workspace(root=tmp_path), family="m6i", workload="bert", nodes=nodes)
    assert f"trainctl submit bert --nodes {nodes} --follow" in steps
    assert f"npx cdk deploy TrainingClusterStack -c family=m6i -c nodes={more}" in steps
    assert steps[-1] == f"trainctl submit bert --nodes {more} --follow"


def test_the_file_that_a_shell_sources_is_its_owners_alone(tmp_path: Path) -> None:
    workspace = Workspace(root=tmp_path)
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIAEXAMPLE")
    slurm = LocalSlurm(root=tmp_path, partitions=(), marker=("LOCAL_SLURM_TEST", "environment"))
    leave_running(workspace=workspace, address=address, slurm=slurm, steps=(), narrator=Narrator())
    assert "AWS_ACCESS_KEY_ID=AKIAEXAMPLE" in workspace.env_file.read_text()
    assert stat.S_IMODE(workspace.env_file.stat().st_mode) == 0o600


@pytest.mark.root
def test_another_user_cannot_read_that_file() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        workspace = Workspace(root=folder)
        address = LocalAwsAddress(port=4566, folder=folder, access_key="AKIAEXAMPLE")
        slurm = LocalSlurm(root=folder, partitions=(), marker=("LOCAL_SLURM_TEST", "environment"))
        leave_running(workspace=workspace, address=address, slurm=slurm, steps=(), narrator=Narrator())
        as_another = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        done = subprocess.run([*as_another, "cat", workspace.env_file], capture_output=True, check=False)
        assert done.stdout == b""
        assert b"Permission denied" in done.stderr
        workspace.env_file.chmod(0o644)
        done = subprocess.run([*as_another, "cat", workspace.env_file], capture_output=True, check=False)
        assert b"AKIAEXAMPLE" in done.stdout, "the folder itself is closed, so that the test shows nothing"
