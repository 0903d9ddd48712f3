"""The IAM actions that a call of AWS takes."""

from __future__ import annotations

import pytest

from rehearsal.recording.actions import actions_of


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
