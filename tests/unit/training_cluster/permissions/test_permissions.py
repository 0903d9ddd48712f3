"""The provider's role: what its table names is allowed, and nothing else, to nothing else. Nothing of it is
proven on AWS (docs/permissions.md); the slow tests compare the table with the library.
"""

import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from tests.unit.stacks.app import BROUGHT, listed
from training_cluster.permissions.scopes import Target, scopes
from training_cluster.permissions.statements import provider_statements
from training_cluster.permissions.table import UNDECIDED, Row, load

BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
EVERYTHING = Target(
    cluster_name="training",
    scripts_bucket_arn="arn:aws:s3:::scripts",
    permissions_boundary=BOUNDARY,
    secret_arn="arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf",
    progress_parameter_arn="arn:aws:ssm:us-east-1:123456789012:parameter/progress",
    progress_log_group_arn="arn:aws:logs:us-east-1:123456789012:log-group:progress:*",
)
# cfn-lint brings a list of IAM's actions; to import it takes seconds.
CFN_LINT = Path(str(getattr(find_spec("cfnlint"), "origin", ""))).parent
# A managed policy's limit, and that of all inline policies of a role together, in characters of JSON without
# blanks; how many managed policies a role takes (IAM and STS quotas).
INLINE_LIMIT, MANAGED_LIMIT, MANAGED_COUNT = 10_240, 6_144, 10
# The longest that a reference becomes: a partition, a region, an account, an ARN.
LONGEST = {"AWS::Partition": 10, "AWS::Region": 14, "AWS::AccountId": 12}
LONGEST_ARN = 130

Statement = dict[str, Any]


def render(target: Target = EVERYTHING, config: dict[str, Any] | None = None) -> Template:
    """Render a stack with only a role that has the provider's statements."""
    stack = cdk.Stack(cdk.App(), "Stack")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    for statement in provider_statements(target, config):
        role.add_to_policy(statement)
    return Template.from_stack(stack)


def policies(template: Template) -> dict[str, list[dict[str, Any]]]:
    """A role's policy that grows too long goes on in managed ones (CDK's own doing)."""
    kinds = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
    return {
        kind: [each["Properties"]["PolicyDocument"] for each in template.find_resources(kind).values()]
        for kind in kinds
    }


def statements(template: Template) -> list[Statement]:
    documents = [document for each in policies(template).values() for document in each]
    return [statement for document in documents for statement in document["Statement"]]


def allowing(template: Template, action: str) -> list[Statement]:
    found = [each for each in statements(template) if action in listed(each["Action"])]
    assert found, action
    return found


@pytest.fixture(scope="module")
def role() -> Template:
    return render()


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return load()


def test_the_role_allows_the_tables_actions_alone(role: Template, table: list[Row]) -> None:
    allowed = {(each["Sid"], action) for each in statements(role) for action in listed(each["Action"])}
    managed = {scope.name for scope in scopes(EVERYTHING) if scope.of_types}
    assert allowed == {(scope, row.action) for row in table for scope in {*row.scopes} - managed}
    known = json.loads((CFN_LINT / "data" / "AdditionalSpecs" / "Policies.json").read_text())
    assert {scope.name for scope in scopes(EVERYTHING)} == {name for row in table for name in row.scopes}
    assert len({row.action for row in table}) == len(table)
    for row in table:
        service, _, name = row.action.partition(":")
        is_action = name.lower() in known.get(service, {}).get("Actions", {})
        assert row.is_named, row.action
        assert row.scopes or row.left_out, row.action
        assert UNDECIDED not in row.scopes, f"decide about {row.action}: docs/permissions.md"
        for reason in row.left_out:
            kind, _, type_ = reason.partition(": ")
            assert kind not in {"unset", "uncalled"} or type_.split()[0] in row.type_names, row.action
        if row.scopes:
            assert is_action, f"{row.action} is no action of IAM's"
            assert "*" not in row.action
            continue
        assert not row.calls, row.action
        if row.unset:
            # Of every type that takes it, what would; that no template has it the slow tests check.
            assert {each for each in row.type_names if not row.excuses(each)} == set(row.unset), row.action
            assert all(row.unset.values()), row.action
        elif row.left_out == ("unknown to IAM",):
            assert not is_action, row.action
        else:
            assert row.left_out[0].partition(":")[0] in {"wildcard", "uncalled", "never"}, row.action
    for scope in scopes(EVERYTHING):
        assert (bool(scope.conditions) or "*" not in scope.resources) != bool(scope.any_resource), scope.name


def test_a_cluster_reaches_its_own_resources_alone(role: Template) -> None:
    name = EVERYTHING.cluster_name
    for action in (
        "cloudformation:DeleteStack",
        "dynamodb:PutItem",
        "logs:GetLogEvents",
        "ssm:GetParameter",
        "logs:PutLogEvents",
    ):
        for statement in allowing(role, action):
            several = statement["Resource"]
            for resource in several if isinstance(several, list) else [several]:
                text = json.dumps(resource)
                assert name in text or "progress" in text, (action, text)
    (console,) = allowing(role, "ec2:GetConsoleOutput")
    tag = {"aws:ResourceTag/parallelcluster:cluster-name": name}
    assert console["Condition"] == {"StringEquals": tag}
    document, instances = allowing(role, "ssm:SendCommand")
    assert "document/AWS-RunShellScript" in json.dumps(document["Resource"])
    assert instances["Condition"] == {"StringEquals": {"ssm:resourceTag/parallelcluster:cluster-name": name}}


def _arns(role: Template, sid: str) -> list[str]:
    """Return the patterns of one statement's resources, with wildcards for references."""
    (statement,) = (each for each in statements(role) if each.get("Sid") == sid)
    several = statement["Resource"]
    return [
        "".join(part if isinstance(part, str) else "*" for part in each["Fn::Join"][1])
        for each in (several if isinstance(several, list) else [several])
    ]


NESTED = "training-ComputeFleetQueuesNestedStackQueuesNestedStackResource-1A2B3C"
ANOTHER = ("training-2", "training2", "another-training", "train")
ROLES = "iam::123456789012:role/parallelcluster"
LOGS = "logs:us-east-1:123456789012:log-group:/aws/parallelcluster"
# What the statements of a cluster's role reach, and what they do not: that of clusters with longer names.
REACH: dict[tuple[str, ...], tuple[list[str], list[str]]] = {
    ("WriteStacks", "Stacks"): (
        [f"cloudformation:us-east-1:123456789012:stack/{name}/0a1b" for name in ("training", NESTED)],
        [f"cloudformation:us-east-1:123456789012:stack/{name}/0a1b" for name in ANOTHER],
    ),
    ("LogGroups", "ClusterLogs"): (
        [
            f"{LOGS}/training-202601011200",
            f"{LOGS}/training-202601011200:log-stream:ip-10-0-0-1.i-0123.slurmctld",
        ],
        [f"{LOGS}/{name}-202601011200" for name in ANOTHER],
    ),
    ("Roles", "BoundedRoles", "Bound", "RolePolicies", "PassRoles"): (
        [
            f"{ROLES}/training/training-RoleHeadNode-1A2B3C",
            f"{ROLES}/{NESTED}/{NESTED[:24]}-Role15b342af-4D5E6F",
            f"{ROLES}/training-LoginNodesNestedStack-1A2B3C/training-LoginNodes-Role15b342af-4D5E6F",
            f"{ROLES}/training-CleanupResourcesFunctionExecutionRole-1A2B3C4D5E6F",
        ],
        [
            f"{ROLES}/{name}{rest}"
            for name in ANOTHER
            for rest in (
                f"/{name}-Role",
                "-CleanupResourcesFunctionExecutionRole-1A",
                "-ComputeFleetQueues-1A/role",
            )
        ],
    ),
    ("InstanceProfiles",): (
        ["iam::123456789012:instance-profile/parallelcluster/training/training-Profile-1A"],
        ["iam::123456789012:instance-profile/parallelcluster/training-2/training-2-1A"],
    ),
}


def _reaches(role: Template, sid: str, resource: str) -> bool:
    arn = resource if resource.startswith("arn:") else f"arn:aws:{resource}"
    return any(fnmatchcase(arn, pattern) for pattern in _arns(role, sid))


@pytest.mark.parametrize("sids", REACH)
def test_a_role_does_not_reach_longer_names(role: Template, sids: tuple[str, ...]) -> None:
    mine, others = REACH[sids]
    for sid in sids:
        assert [each for each in mine if not _reaches(role, sid, each)] == []
        assert [each for each in others if _reaches(role, sid, each)] == []


@pytest.mark.parametrize("length", [13, 60])
def test_a_role_reaches_names_that_cloudformation_shortens(length: int) -> None:
    name = ("language-models-of-the-research-team-" * 2)[:length]
    role = render(Target(**{**vars(EVERYTHING), "cluster_name": name}))
    cleanup = "CleanupResourcesFunctionExecutionRole"
    for shortened in (name[:24] + f"-{cleanup}"[:25], f"{name}-{cleanup}"[:50]):
        assert _reaches(role, "Roles", f"{ROLES}/{shortened}-1A2B3C4D5E6F"), shortened
    assert not _reaches(role, "Roles", f"{ROLES}/training/training-RoleHeadNode-1A2B3C")


def test_roles_are_passed_and_bounded(role: Template) -> None:
    (statement,) = allowing(role, "iam:PassRole")
    assert listed(statement["Action"]) == ["iam:PassRole"]
    # EC2 has two names in China; ParallelCluster's own published policy (IamPassRole) has both everywhere.
    services = ["lambda.amazonaws.com", "ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
    assert statement["Condition"] == {"StringEqualsIfExists": {"iam:PassedToService": services}}
    for action in (
        "iam:AttachRolePolicy",
        "iam:CreateRole",
        "iam:DeleteRolePolicy",
        "iam:DetachRolePolicy",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
    ):
        for statement in allowing(role, action):
            assert statement["Condition"]["StringEquals"] == {"iam:PermissionsBoundary": BOUNDARY}, action
    unbounded = render(Target(**{**vars(EVERYTHING), "permissions_boundary": None}))
    allowed = {action for each in statements(unbounded) for action in listed(each["Action"])}
    assert "iam:PutRolePermissionsBoundary" not in allowed
    assert "iam:CreateRole" in allowed
    assert "iam:PermissionsBoundary" not in json.dumps(statements(unbounded))


def _length(value: Any) -> int:
    """Return the largest length of a document's JSON when deployed, with its references resolved."""
    if isinstance(value, list):
        return sum(_length(each) + 1 for each in value) + 1
    if not isinstance(value, dict):
        return len(json.dumps(value))
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return sum(_length(part) - 2 + len(separator) for part in parts) + 2
    if len(value) == 1 and next(iter(value)) in {"Ref", "Fn::GetAtt", "Fn::ImportValue"}:
        return LONGEST.get(str(value.get("Ref")), LONGEST_ARN) + 2
    return sum(_length(key) + _length(each) + 2 for key, each in value.items()) + 1


def test_the_policies_fit_iams_limits(synthesise: Callable[..., dict[str, Template]]) -> None:
    """After CDK has split them."""
    stores = ("Ebs", "FsxLustre", "FsxOntap", "FsxOpenZfs", "FileCache")
    lustre = {"DataRepositoryAssociations": [{"DataRepositoryPath": "s3://data"}], "KmsKeyId": "mine"}
    fullest: dict[str, Any] = {
        "HeadNode": {"SharedStorageType": "Efs", "Networking": {"ElasticIp": True}},
        "Scheduling": {"SlurmQueues": []},
        "SharedStorage": [{"StorageType": each, f"{each}Settings": lustre} for each in stores],
    }
    alone = (render(), render(config=fullest))
    for template in (*alone, *(synthesise(**flags)["TrainingClusterStack"] for flags in ({}, BROUGHT))):
        found = policies(template)
        (inline,) = (each for each in found["AWS::IAM::Policy"] if "CreateStack" in json.dumps(each))
        assert _length(inline) <= INLINE_LIMIT
        managed = found["AWS::IAM::ManagedPolicy"]
        assert [length for each in managed if (length := _length(each)) > MANAGED_LIMIT] == []
        assert len(managed) < MANAGED_COUNT  # one more is AWS's own, for the functions' logs


def test_the_provider_of_the_app_has_these_statements(synthesise: Callable[..., dict[str, Template]]) -> None:
    cluster = synthesise()["TrainingClusterStack"]
    sids = {each.get("Sid") for each in statements(cluster)}
    target = Target(**{**vars(EVERYTHING), "permissions_boundary": None, "secret_arn": None})
    wired = {"ProgressParameter", "ProgressLog"}
    always = {scope.name for scope in scopes(target) if not scope.of_types}
    assert always - wired <= sids
