"""The table of permissions, and the command that writes it (`make permissions`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rehearsal.recording.actions import actions_of
from rehearsal.recording.provider import CODE
from rehearsal.recording.provider_calls import provider_calls
from rehearsal.recording.recording import Recording
from tools.pcluster.permission_sources import SourceError, published_statements, read_schemas_from
from tools.pcluster.permissions_table import with_calls, with_policy, with_types
from training_cluster.paths import ROOT
from training_cluster.permissions.table import PATH, UNDECIDED, Row, dump, load

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


def test_the_providers_own_calls_are_those_of_its_source() -> None:
    source = {
        (action, f"{file} {operation}")
        for file, service, operation in provider_calls(CODE)
        for action in actions_of(service, operation, "")
    }
    assert {(row.action, call) for row in load() for call in row.provider} == source, "type: make permissions"


def test_a_call_is_found_in_a_file_by_its_client_and_its_name(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        'boto3.client("s3").get_paginator("list_objects_v2")\nboto3.client("ssm").put_parameter()\nput_object()\n'
    )
    assert list(provider_calls(tmp_path)) == [
        ("own.py", "s3", "ListObjectsV2"),
        ("own.py", "ssm", "PutParameter"),
    ]


@pytest.mark.parametrize(
    ("call", "actions"),
    [
        ("ec2 DescribeSubnets SubnetIds", {"ec2:DescribeSubnets"}),
        ("s3 HeadBucket Bucket", {"s3:ListBucket"}),
        ("s3 GetObject Bucket,Key,VersionId", {"s3:GetObjectVersion"}),
        ("s3 DeleteObjects Bucket,Delete", {"s3:DeleteObject", "s3:DeleteObjectVersion"}),
        ("ec2 RunInstances DryRun,TagSpecifications", {"ec2:RunInstances", "ec2:CreateTags"}),
        ("tagging GetResources -", {"tag:GetResources"}),
        ("sts GetCallerIdentity -", set()),
    ],
)
def test_a_call_takes_the_actions_that_iam_names(call: str, actions: set[str]) -> None:
    assert actions_of(*call.split()) == actions


def _schema(*created: str) -> dict[str, Any]:
    return {"handlers": {"create": {"permissions": list(created)}}, "properties": {"Volumes": {}}}


def test_the_table_is_written_as_it_is_read() -> None:
    assert dump(load()) == PATH.read_text(encoding="utf-8")


def test_a_broken_line_of_the_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "permissions.tsv").write_text(dump(ROWS) + "ec2:Start\n")
    with pytest.raises(ValueError, match=r"permissions\.tsv:5: want the cells action, scopes"):
        load(tmp_path / "permissions.tsv")


def test_what_the_registry_says_anew_is_for_a_person_to_decide_and_the_rest_is_kept() -> None:
    found = {row.action: row for row in with_types(ROWS, lambda _: _schema("ec2:RunInstances", "ec2:New"))}
    assert found["ec2:RunInstances"] == ROWS[0]
    assert found["ec2:New"].scopes == (UNDECIDED,)
    assert found["iam:GetPolicy"] == ROWS[2]
    assert "ec2:AttachVolume" not in found, "nothing names it any more"
    again = list(found.values())
    assert with_types(again, lambda _: _schema("ec2:New", "ec2:RunInstances")) == again


def test_a_property_that_a_type_has_not_is_no_reason_to_leave_a_row_out() -> None:
    with pytest.raises(
        SourceError, match="left out for the property Volumes, which AWS::EC2::Instance lacks"
    ):
        with_types(ROWS, lambda _: {"handlers": {}})


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


def test_a_call_that_the_library_makes_no_more_goes_and_a_new_type_waits_for_its_schema() -> None:
    seen = {"library ec2 RunInstances DryRun", "record.py ssm PutParameter Name"}
    recording = Recording(calls=seen, types={"AWS::EC2::Instance": set(), "AWS::New::Type": {"Name"}})
    assert Recording.parse(recording.dump()) == recording
    found = {row.action: row for row in with_calls(ROWS, recording, [("record.py", "ssm", "PutParameter")])}
    assert found["ec2:RunInstances"] == ROWS[0]
    assert "iam:GetPolicy" not in found
    assert found["-"].types == ("AWS::New::Type",)
    assert found["ssm:PutParameter"].provider == ("record.py PutParameter",)


def test_a_schema_that_is_missing_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"type: aws cloudformation describe-type .* AWS::EC2::Instance"):
        read_schemas_from(tmp_path)("AWS::EC2::Instance")


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
