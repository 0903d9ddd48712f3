"""Rights of roles: those of the templates, and those that nodes get by the cluster config."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from aws_cdk.assertions import Template

from tests.unit.security_proofs import App, Json, attached_aws_policies
from tools.synth_families import OTHERS
from training_cluster.acknowledgements import flat

EVERYTHING = OTHERS["everything"]
MANAGER = "arn:<AWS::Partition>:iam::aws:policy/AmazonSSMManagedInstanceCore"


@pytest.fixture
def app(synthesise: Callable[..., dict[str, Template]]) -> Callable[..., App]:
    return lambda **flags: App.of({s: deepcopy(t.to_json()) for s, t in synthesise(**flags).items()})


def test_roles_in_the_templates_have_one_policy_of_aws_the_right_to_log(app: Callable[..., App]) -> None:
    for flags in ({}, *OTHERS.values()):
        assert attached_aws_policies(app(**flags)) == {"policy/service-role/AWSLambdaBasicExecutionRole"}
    broken = app()
    role = next(properties for _, properties in broken.resources("AWS::IAM::Role"))
    role["ManagedPolicyArns"] = ["arn:aws:iam::aws:policy/AdministratorAccess"]
    assert "policy/AdministratorAccess" in attached_aws_policies(broken)


def test_nodes_may_read_their_scripts_and_answer_session_manager_and_nothing_else(
    app: Callable[..., App],
) -> None:
    """Logs, state and commands are rights that ParallelCluster gives its roles itself."""
    found = app(**EVERYTHING)
    nodes = [found.config["HeadNode"], *found.queues]
    scripts = {"BucketName": "StorageStack:BucketName", "KeyName": "bootstrap/training/*"}
    exact = {"S3Access": [scripts], "AdditionalIamPolicies": [{"Policy": MANAGER}]}
    assert [each["Iam"] for each in nodes] == [exact] * 3, "the head node, two queues"
    assert found.exported(scripts["BucketName"]).strip("<>") in dict(names(found, "AWS::S3::Bucket"))


def names(app: App, kind: str) -> list[tuple[str, Json]]:
    return [(name.partition("/")[2], properties) for name, properties in app.resources(kind)]


def test_login_nodes_have_the_same_rights_by_a_policy_of_ours(app: Callable[..., App]) -> None:
    found = app(**EVERYTHING)
    ((ours, policy),) = [
        each
        for each in names(found, "AWS::IAM::ManagedPolicy")
        if "-login-" in flat(each[1].get("ManagedPolicyName", ""))
    ]
    (pool,) = found.config["LoginNodes"]["Pools"]
    assert pool["Iam"] == {"AdditionalIamPolicies": [{"Policy": MANAGER}, {"Policy": f"<{ours}>"}]}
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "s3:GetObject")
    assert (
        flat(statement["Resource"])
        == "arn:<AWS::Partition>:s3:::StorageStack:BucketName/bootstrap/training/*"
    )
