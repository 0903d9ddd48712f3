"""Variables of a rehearsed job, which reaches the local AWS, and never a real account."""

import stat
from pathlib import Path

import pytest

from rehearsal.bootstrap import job_variables
from rehearsal.keep_running import leave_running
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm
from rehearsal.narrator import Narrator
from rehearsal.workspace import Workspace


def test_jobs_reach_the_local_aws_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "a-persons")
    workspace = Workspace(root=tmp_path)
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIAEXAMPLE")
    slurm = LocalSlurm(root=tmp_path, partitions=(), marker=("LOCAL_SLURM_TEST", "environment"))
    variables = job_variables(workspace, address)
    assert "a-persons" not in {*slurm.client_env().values(), *variables.values()}
    assert variables["AWS_ENDPOINT_URL"] == address.url
    assert variables["AWS_ENDPOINT_URL_S3"] == address.s3_url
    assert variables["AWS_ACCESS_KEY_ID"] == "AKIAEXAMPLE"
    assert variables["TMPDIR"].startswith(str(tmp_path / "node")), "a node's own, not that of AWS's clients"

    leave_running(workspace=workspace, address=address, slurm=slurm, steps=(), narrator=Narrator())
    assert "AWS_ACCESS_KEY_ID=AKIAEXAMPLE" in workspace.env_file.read_text()
    assert stat.S_IMODE(workspace.env_file.stat().st_mode) == 0o600, "its owner's alone"
