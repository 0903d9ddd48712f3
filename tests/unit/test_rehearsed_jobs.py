"""A rehearsed job asks the local AWS, and never an account of the person who rehearses."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal.kept import job_variables
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm
from rehearsal.workspace import Workspace


def test_a_persons_account_does_not_reach_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "a-persons")
    slurm = LocalSlurm(root=tmp_path, partitions=(), marker=("LOCAL_SLURM_TEST", "environment"))
    assert "a-persons" not in slurm.client_env().values()


def test_jobs_ask_the_local_aws(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path)
    variables = job_variables(Workspace(root=tmp_path), address)
    assert variables["AWS_ENDPOINT_URL"] == address.url
    assert variables["AWS_ENDPOINT_URL_S3"] == address.s3_url
    assert variables["AWS_ACCESS_KEY_ID"]
    assert variables["TMPDIR"].startswith(str(tmp_path / "node")), "a node's own, not that of AWS's clients"
