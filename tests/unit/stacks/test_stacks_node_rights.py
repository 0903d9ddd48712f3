"""Rights of roles: those of the templates, and those that nodes get by the cluster config."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from aws_cdk.assertions import Template
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document
from moto.iam.aws_managed_policies import aws_managed_policies_data

from tests.unit.stacks.security_proofs import App, Json, attached_aws_policies
from tools.synth_families import OTHERS
from training_cluster.acknowledgements import flat

EVERYTHING = OTHERS["everything"]


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


def names(app: App, kind: str) -> list[tuple[str, Json]]:
    return [(name.partition("/")[2], properties) for name, properties in app.resources(kind)]


def own_policy(app: App, part: str) -> tuple[str, list[Json]]:
    """Return reference and statements of our policy with a part of its name."""
    ((ours, policy),) = [
        each
        for each in names(app, "AWS::IAM::ManagedPolicy")
        if part in flat(each[1].get("ManagedPolicyName", ""))
    ]
    return f"<{ours}>", policy["PolicyDocument"]["Statement"]


def test_nodes_may_read_their_scripts_and_answer_session_manager_and_compute_nodes_write_data_sets(
    app: Callable[..., App],
) -> None:
    """Nothing else. Logs and state are rights that ParallelCluster gives its roles itself."""
    found = app(**EVERYTHING)
    nodes = [found.config["HeadNode"], *found.queues]
    scripts = {"BucketName": "TrainingCluster-Storage:BucketName", "KeyName": "bootstrap/training/*"}
    # A reference, so the policy outlives the roles that have it.
    ours, _ = own_policy(found, "parallelcluster-training-nodes-")
    data, (statement, mail, fleet) = own_policy(found, "parallelcluster-training-datasets-")
    head, *compute = [each["Iam"] for each in nodes]
    metrics, sends = own_policy(found, "parallelcluster-training-metrics-")
    assert head == {"S3Access": [scripts], "AdditionalIamPolicies": [{"Policy": ours}, {"Policy": metrics}]}
    rights = {each["Action"]: flat(each["Resource"]) for each in sends}
    assert rights.pop("aps:RemoteWrite") == EVERYTHING["metrics_workspace"]
    assert rights.pop("secretsmanager:GetSecretValue") == EVERYTHING["alert_webhook_secret"]
    ((_, topic),) = rights.items()
    assert topic.endswith(":TrainingCluster_training_Alarms")
    exact = {"S3Access": [scripts], "AdditionalIamPolicies": [{"Policy": ours}, {"Policy": data}]}
    assert compute == [exact] * 2, "two queues"
    assert set(statement["Action"]) == {"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"}
    assert (
        flat(statement["Resource"])
        == "arn:<AWS::Partition>:s3:::TrainingCluster-Storage:BucketName/datasets/*"
    )
    assert [each["Effect"] for each in (statement, mail, fleet)] == ["Allow", "Allow", "Deny"]
    assert mail["Action"] == "sns:Publish"
    assert flat(mail["Resource"]).endswith(":TrainingCluster_training_Jobs"), "that topic and no other"
    assert found.exported(scripts["BucketName"]).strip("<>") in dict(names(found, "AWS::S3::Bucket"))


@pytest.mark.parametrize(("item", "is_allowed"), [("COMPUTE_FLEET", False), ("CLUSTER_CONFIG.i-1", True)])
def test_no_job_may_stop_the_compute_fleet(app: Callable[..., App], item: str, *, is_allowed: bool) -> None:
    """A job has its node's role, which ParallelCluster lets write all items of the cluster's table."""
    table = "arn:<AWS::Partition>:dynamodb:<AWS::Region>:<AWS::AccountId>:table/parallelcluster-training"
    of_library = {"Effect": "Allow", "Action": ["dynamodb:UpdateItem"], "Resource": [table]}
    _, statements = own_policy(app(), "-datasets-")
    resolved = [each | {"Resource": flat(each["Resource"])} for each in statements]
    policies = [parse_policy_document({"Statement": each}) for each in ([of_library], resolved)]
    context = EvalContext(
        principal_arn="arn:aws:sts::123456789012:assumed-role/compute/i-1",
        principal_type="AssumedRole",
        principal_account="123456789012",
        region="us-east-1",
        action="dynamodb:UpdateItem",
        resource_arn=table,
        service_context={"dynamodb:leadingkeys": [item]},
    )
    assert (evaluate(context, policies).decision == "Allow") == is_allowed


def test_nodes_have_what_a_session_and_a_command_need_and_read_no_parameter(
    app: Callable[..., App],
) -> None:
    """AWS's two policies are read, not remembered: moto brings their documents."""
    of_aws = json.loads(aws_managed_policies_data)

    def actions(name: str) -> set[str]:
        return {action for each in of_aws[name]["Document"]["Statement"] for action in each["Action"]}

    _, (statement, pull) = own_policy(app(), "parallelcluster-training-nodes-")
    login = "ecr:GetAuthorizationToken"
    assert login in statement["Action"]
    ours, core = set(statement["Action"]) - {login}, actions("AmazonSSMManagedInstanceCore")
    assert not [action for action in ours if "Parameter" in action]
    assert ours == actions("AWSCloud9SSMInstanceProfile") | {
        action for action in core if action.startswith("ec2messages:")
    }, "a session; a command"
    assert ours < core
    assert set(pull["Action"]) == {
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:GetDownloadUrlForLayer",
    }
    assert flat(pull["Resource"]) == (
        "arn:<AWS::Partition>:ecr:<AWS::Region>:<AWS::AccountId>:repository/*"
    ), "the account's own registry"


def test_buckets_and_policies_of_the_users_are_those_of_every_node(app: Callable[..., App]) -> None:
    arn = "arn:aws:iam::123456789012:policy/team"
    found = app(
        node_policies=arn, read_buckets="data,shared/corpora", write_buckets="out/runs/", login_nodes="1"
    )
    buckets, statements = own_policy(found, "-buckets-")
    for node in (found.config["HeadNode"], *found.queues, *found.config["LoginNodes"]["Pools"]):
        policies = [each["Policy"] for each in node["Iam"]["AdditionalIamPolicies"]]
        assert policies[-2:] == [arn, buckets]
    rights = {
        (action, flat(resource), json.dumps(each.get("Condition")))
        for each in statements
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
        for resource in (each["Resource"] if isinstance(each["Resource"], list) else [each["Resource"]])
    }
    s3 = "arn:<AWS::Partition>:s3:::"
    below = '{"StringLike": {"s3:prefix": ["%s", "%s/*"]}}'
    assert rights == {
        ("s3:ListBucket", f"{s3}data", "null"),
        ("s3:ListBucket", f"{s3}shared", below % ("corpora", "corpora")),
        ("s3:ListBucket", f"{s3}out", below % ("runs", "runs")),
        *(("s3:GetObject", f"{s3}{each}/*", "null") for each in ("data", "shared/corpora", "out/runs")),
        ("s3:PutObject", f"{s3}out/runs/*", "null"),
        ("s3:AbortMultipartUpload", f"{s3}out/runs/*", "null"),
    }


def test_the_provider_may_attach_the_policies_of_the_users_and_no_others(app: Callable[..., App]) -> None:
    arn = "arn:aws:iam::123456789012:policy/team"

    def attachable(**flags: str) -> str:
        text = json.dumps([each for _, each in names(app(**flags), "AWS::IAM::Policy")])
        return text + json.dumps([each for _, each in names(app(**flags), "AWS::IAM::ManagedPolicy")])

    assert arn in attachable(node_policies=arn)
    assert arn not in attachable()


def test_policies_of_the_head_node_stay_there(app: Callable[..., App], tmp_path: Path) -> None:
    admin, file = "arn:aws:iam::aws:policy/AdministratorAccess", tmp_path / "overrides.yaml"
    bucket = {"BucketName": "secrets", "EnableWriteAccess": True}
    iam: Json = {"AdditionalIamPolicies": [{"Policy": admin}], "S3Access": [bucket]}
    file.write_text(json.dumps({"HeadNode": {"Iam": iam}}))
    plain, found = app(login_nodes="1"), app(login_nodes="1", overrides=str(file))
    ours = plain.config["HeadNode"]["Iam"]
    assert found.config["HeadNode"]["Iam"] == {key: [*ours[key], *iam[key]] for key in ours}
    for part in ("Scheduling", "LoginNodes"):
        assert found.config[part] == plain.config[part]
    conditions = [
        statement["Condition"]["ArnLike"]["iam:PolicyARN"]
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        for _, policy in found.resources(kind)
        for statement in policy["PolicyDocument"]["Statement"]
        if "ArnLike" in statement.get("Condition", {})
    ]
    assert [admin in each for each in conditions] == [True]


def test_login_nodes_have_the_same_rights_by_policies_of_ours(app: Callable[..., App]) -> None:
    found = app(**EVERYTHING)
    nodes, _ = own_policy(found, "-nodes-")
    login, (statement,) = own_policy(found, "-login-")
    (pool,) = found.config["LoginNodes"]["Pools"]
    assert pool["Iam"] == {"AdditionalIamPolicies": [{"Policy": nodes}, {"Policy": login}]}
    assert statement["Action"] == "s3:GetObject"
    assert (
        flat(statement["Resource"])
        == "arn:<AWS::Partition>:s3:::TrainingCluster-Storage:BucketName/bootstrap/training/*"
    )


def test_a_cluster_of_the_longest_name_has_policies_that_fit(app: Callable[..., App]) -> None:
    """128 characters (IAM quotas); the provider may attach none whose name begins otherwise."""
    found = app(cluster_name="c" * 60, login_nodes="1")
    all_of_them = [each for _, each in names(found, "AWS::IAM::ManagedPolicy")]
    # The provider's own, which has no name of ours, goes on where its role's policy grows too long.
    named = [flat(each["ManagedPolicyName"]) for each in all_of_them if "ManagedPolicyName" in each]
    assert {each.split("-")[2] for each in named} == {"nodes", "login", "datasets"}
    for name in named:
        assert name.startswith("parallelcluster-")
        assert len(name.replace("<AWS::Region>", "r" * 14)) <= 128
