"""Published sources of the permissions: the User Guide's policies and the registry's schemas."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.pcluster.permission_sources import SourceError, published_statements, read_schemas_from
from tools.pcluster.permissions_table import with_policy
from training_cluster.paths import ROOT
from training_cluster.permissions.table import PATH, Row


def test_a_wildcard_of_the_published_policy_makes_no_row(tmp_path: Path) -> None:
    names = (
        "ParallelClusterClusterPolicy1",
        "ParallelClusterClusterPolicy2",
        "DefaultParallelClusterIamAdminPolicy",
    )
    document = "{PolicyDocument: {Statement: [{Sid: A, Action: ['ec2:R*', 'EC2:new'], Resource: !Sub 'x'}]}}"
    policy = "Resources:\n" + "".join(f"  {name}: {{Properties: {document}}}\n" for name in names)
    (tmp_path / "policies.yaml").write_text(policy)
    found = {
        row.action: row.policy for row in with_policy(ROWS, published_statements(tmp_path / "policies.yaml"))
    }
    assert found == {
        "ec2:AttachVolume": (),
        "EC2:new": ("A",),
        "ec2:RunInstances": ("A as ec2:R*",),
        "iam:GetPolicy": (),
    }


def test_a_schema_that_is_missing_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"type: aws cloudformation describe-type .* AWS::EC2::Instance"):
        read_schemas_from(tmp_path)("AWS::EC2::Instance")


@pytest.mark.slow
def test_without_credentials_the_registry_is_one_clear_message() -> None:
    before = PATH.read_bytes()
    nothing = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    done = subprocess.run(
        [sys.executable, "-m", "tools.pcluster.permissions_table", "types"],
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_DEFAULT_REGION": "us-east-1",
            **nothing,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "It needs an AWS account" in done.stderr
    assert "--schemas FOLDER" in done.stderr
    assert "Traceback" not in done.stderr
    assert PATH.read_bytes() == before


ROWS = [
    Row(
        action="ec2:RunInstances",
        scopes=("Ec2",),
        calls=("RunInstances",),
        types=("AWS::EC2::Instance create",),
    ),
    Row(
        action="ec2:AttachVolume",
        types=("AWS::EC2::Instance create",),
        left_out=("unset: AWS::EC2::Instance Volumes",),
    ),
    Row(action="iam:GetPolicy", scopes=("ReadIam",), calls=("GetPolicy",)),
]
