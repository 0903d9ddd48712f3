"""Rights of nodes and of the provider, in the templates and by the cluster config."""

import json

import pytest
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document
from moto.iam.aws_managed_policies import aws_managed_policies_data

from tests.unit.stacks.app import BOUNDARY, EVERYTHING, TEAM_POLICY, App, Json, listed
from training_cluster.acknowledgements import flat
from training_cluster.cluster.node_policies import PULL_ACTIONS, SESSION_ACTIONS
from training_cluster.paths import ROOT
from training_cluster.stack_names import DEFAULT_CLUSTER

S3 = "arn:<AWS::Partition>:s3:::"
BUCKET = "TrainingCluster-Storage:BucketName"


def asked(action: str, resource: str, keys: dict[str, Json]) -> EvalContext:
    """Return a call of a node's or a user's session for the evaluator of policies."""
    return EvalContext(
        principal_arn="arn:aws:sts::123456789012:assumed-role/compute/i-1",
        principal_type="AssumedRole",
        principal_account="123456789012",
        region="us-east-1",
        action=action,
        resource_arn=resource,
        service_context=keys,
    )


def own_policy(app: App, part: str) -> tuple[str, list[Json]]:
    """Return reference and statements of our policy with a part of its name."""
    ((ours, policy),) = [
        (id_, policy)
        for id_, policy in app.resources("AWS::IAM::ManagedPolicy").items()
        if part in flat(policy.get("ManagedPolicyName", ""))
    ]
    return f"<{ours}>", policy["PolicyDocument"]["Statement"]


def test_nodes_read_scripts_and_write_data_sets(everything: App) -> None:
    """Nothing else. Logs and state are rights that ParallelCluster gives its roles itself."""
    scripts = {"BucketName": BUCKET, "KeyName": "bootstrap/training/*"}
    # A reference, so the policy outlives the roles that have it.
    ours, _ = own_policy(everything, "-nodes-")
    data, (statement, mail, fleet) = own_policy(everything, "-datasets-")
    metrics, sends = own_policy(everything, "-metrics-")
    places, (asks,) = own_policy(everything, "-topology-")
    assert asks["Action"] == "ec2:DescribeInstanceTopology"
    head, *compute = [each["Iam"] for each in (everything.config["HeadNode"], *everything.queues)]
    own = [{"Policy": policy} for policy in (ours, metrics, places)]
    assert head == {"S3Access": [scripts], "AdditionalIamPolicies": own}
    rights = {each["Action"]: flat(each["Resource"]) for each in sends}
    assert rights.pop("aps:RemoteWrite") == EVERYTHING["metrics_workspace"]
    assert rights.pop("secretsmanager:GetSecretValue") == EVERYTHING["alert_webhook_secret"]
    ((_, topic),) = rights.items()
    assert topic.endswith(":TrainingCluster_training_Alarms")
    exact = {"S3Access": [scripts], "AdditionalIamPolicies": [{"Policy": ours}, {"Policy": data}]}
    assert compute == [exact] * 2, "two queues"
    assert set(statement["Action"]) == {"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"}
    assert flat(statement["Resource"]) == f"{S3}{BUCKET}/datasets/*"
    assert [each["Effect"] for each in (statement, mail, fleet)] == ["Allow", "Allow", "Deny"]
    assert mail["Action"] == "sns:Publish"
    assert flat(mail["Resource"]).endswith(":TrainingCluster_training_Jobs"), "that topic and no other"


ALLOWED = {
    "s3:GetObject": ("datasets/gpt2/x", "users/alice/x"),
    "s3:PutObject": ("users/alice/x",),
    "s3:ListBucket": ("users/alice/x",),
    "secretsmanager:GetSecretValue": (f"secret:training-cluster/{DEFAULT_CLUSTER}/alice/HF_TOKEN-AbCdEf",),
    "sns:Publish": (f"TrainingCluster_{DEFAULT_CLUSTER}_Jobs",),
}
TRIED = {*(each for of in ALLOWED.values() for each in of), "users/bob/x", "users/alice-2/x", "checkpoints/x"}
TRIED |= {
    f"bootstrap/{DEFAULT_CLUSTER}/bundle",
    f"secret:training-cluster/{DEFAULT_CLUSTER}/bob/HF_TOKEN-AbCdEf",
    "secret:slurm-AbCdEf",
}


def users_role(app: App) -> tuple[str, Json]:
    ((id_, role),) = [e for e in app.resources("AWS::IAM::Role").items() if e[0].startswith("UsersRole")]
    return id_, role


def test_a_session_reaches_what_is_its_users(people: App) -> None:
    """FSx imports datasets/ with the owners that the uploader names, root included: no job writes there."""
    role, _ = users_role(people)
    policies = people.resources("AWS::IAM::Policy").values()
    (document,) = [each["PolicyDocument"] for each in policies if each["Roles"] == [{"Ref": role}]]
    rights = [e | {"Resource": [flat(arn) for arn in listed(e["Resource"])]} for e in document["Statement"]]
    page = (ROOT / "docs" / "security.md").read_text()
    assert [action for each in rights for action in listed(each["Action"]) if f"`{action}`" not in page] == []
    # The evaluator knows no variables of policies.
    of_alice = json.loads(json.dumps({"Statement": rights}).replace("${aws:PrincipalTag/user}", "alice"))
    here = "<AWS::Region>:<AWS::AccountId>"
    for action, allowed in ALLOWED.items():
        service = action.partition(":")[0]
        for name in TRIED:
            arn = f"{S3}{BUCKET}" if service == "s3" else f"arn:<AWS::Partition>:{service}:{here}:{name}"
            if service == "s3" and action != "s3:ListBucket":
                arn = f"{arn}/{name}"
            found = evaluate(asked(action, arn, {"s3:prefix": name}), [parse_policy_document(of_alice)])
            assert (found.decision == "Allow") == (name in allowed), (action, name)


def test_compute_nodes_only_begin_sessions_of_users(people: App) -> None:
    id_, role = users_role(people)
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    roles = [flat(each).rpartition(":")[2] for each in trust["Condition"]["ArnLike"]["aws:PrincipalArn"]]
    nodes = [f"{DEFAULT_CLUSTER}{each}" for each in ("/*", "-ComputeFleet*", "-LoginNodes*")]
    assert roles == [f"role/parallelcluster/{each}" for each in nodes]
    assert flat(trust["Principal"]["AWS"]).endswith(":root")
    assert role["ManagedPolicyArns"] == [TEAM_POLICY]
    begin = ["sts:AssumeRole", "sts:TagSession"]
    assert trust["Action"] == begin
    rights = [each for part in ("-nodes-", "-datasets-") for each in own_policy(people, part)[1]]
    others = [each for each in rights if not set(listed(each["Action"])) & set(SESSION_ACTIONS)]
    assert [(each["Effect"], each["Action"]) for each in others] == [
        ("Allow", begin),
        ("Deny", ["dynamodb:PutItem", "dynamodb:UpdateItem"]),
    ]
    buckets, _ = own_policy(people, "-buckets-")
    policies = [json.dumps(e["Iam"]["AdditionalIamPolicies"]) for e in (*people.people_reach, *people.queues)]
    assert [buckets in each for each in policies] == [True, False]
    assert f"users-role=<{id_}>" in people.config["HeadNode"]["CustomActions"]["OnNodeUpdated"]["Args"]


def test_login_nodes_have_the_same_rights(everything: App) -> None:
    nodes, _ = own_policy(everything, "-nodes-")
    login, (statement,) = own_policy(everything, "-login-")
    (pool,) = everything.config["LoginNodes"]["Pools"]
    assert pool["Iam"] == {"AdditionalIamPolicies": [{"Policy": nodes}, {"Policy": login}]}
    assert statement["Action"] == "s3:GetObject"
    assert flat(statement["Resource"]) == f"{S3}{BUCKET}/bootstrap/training/*"


@pytest.mark.parametrize(("item", "is_allowed"), [("COMPUTE_FLEET", False), ("CLUSTER_CONFIG.i-1", True)])
def test_no_job_may_stop_the_compute_fleet(default: App, item: str, *, is_allowed: bool) -> None:
    """A job has its node's role, which ParallelCluster lets write all items of the cluster's table."""
    here = "<AWS::Region>:<AWS::AccountId>"
    table = f"arn:<AWS::Partition>:dynamodb:{here}:table/parallelcluster-{DEFAULT_CLUSTER}"
    of_library = {"Effect": "Allow", "Action": ["dynamodb:UpdateItem"], "Resource": [table]}
    _, statements = own_policy(default, "-datasets-")
    resolved = [each | {"Resource": flat(each["Resource"])} for each in statements]
    policies = [parse_policy_document({"Statement": each}) for each in ([of_library], resolved)]
    context = asked("dynamodb:UpdateItem", table, {"dynamodb:leadingkeys": [item]})
    assert (evaluate(context, policies).decision == "Allow") == is_allowed


def test_nodes_have_sessions_commands_and_all_registries(default: App) -> None:
    """AWS's policies are read, not remembered: moto brings their documents. AWS's own images are abroad."""
    of_aws = json.loads(aws_managed_policies_data)

    def actions(name: str) -> set[str]:
        return {action for each in of_aws[name]["Document"]["Statement"] for action in each["Action"]}

    _, (statement,) = own_policy(default, "-nodes-")
    commands = {each for each in actions("AmazonSSMManagedInstanceCore") if each.startswith("ec2messages:")}
    assert set(PULL_ACTIONS) <= actions("AmazonEC2ContainerRegistryReadOnly")
    assert set(statement["Action"]) == {*PULL_ACTIONS, *actions("AWSCloud9SSMInstanceProfile"), *commands}
    assert not [action for action in statement["Action"] if "Parameter" in action]
    assert statement["Resource"] == "*"


def test_every_node_has_the_users_buckets_and_policies(brought: App) -> None:
    buckets, statements = own_policy(brought, "-buckets-")
    for node in (*brought.people_reach, *brought.queues):
        policies = [each["Policy"] for each in node["Iam"]["AdditionalIamPolicies"]]
        assert policies[-2:] == [TEAM_POLICY, buckets]
    rights = {
        (action, flat(resource), json.dumps(each.get("Condition")))
        for each in statements
        for action in listed(each["Action"])
        for resource in listed(each["Resource"])
    }
    below = '{"StringLike": {"s3:prefix": ["%s", "%s/*"]}}'
    assert rights == {
        ("s3:ListBucket", f"{S3}data", "null"),
        ("s3:ListBucket", f"{S3}shared", below % ("corpora", "corpora")),
        ("s3:ListBucket", f"{S3}out", below % ("runs", "runs")),
        *(("s3:GetObject", f"{S3}{each}/*", "null") for each in ("data", "shared/corpora", "out/runs")),
        ("s3:PutObject", f"{S3}out/runs/*", "null"),
        ("s3:AbortMultipartUpload", f"{S3}out/runs/*", "null"),
    }


def test_a_boundary_bounds_and_policies_are_named(default: App, brought: App) -> None:
    assert TEAM_POLICY in json.dumps(list(brought.statements()))
    assert TEAM_POLICY not in json.dumps(list(default.statements()))
    roles = brought.resources("AWS::IAM::Role").values()
    assert {each.get("PermissionsBoundary") for each in roles} == {BOUNDARY}
    assert brought.config["Iam"] == {"PermissionsBoundary": BOUNDARY}
