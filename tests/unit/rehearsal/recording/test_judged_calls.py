"""The proof of the provider's rights: without a row of permissions.tsv, recorded calls are denied.

`make permissions` records the calls that local AWSs judged, those of CloudFormation for the cluster's stack
included. tests/slow/stacks/test_stacks_deploy.py adds its own with UPDATE_GOLDEN.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from ministack.core.iam_evaluator import EvalContext, ParsedStatement, evaluate, parse_policy_document

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.rights.nearest import explain
from rehearsal.local_aws.rights.need import Need, arn
from rehearsal.local_aws.rights.registry_handlers import OPERATIONS, Resource, needs
from rehearsal.recording import judged_calls
from rehearsal.recording.judged_calls import RecordedCall
from tests.unit.training_cluster.monitoring.monitored import LIBRARY
from training_cluster.permissions import statements
from training_cluster.permissions.overrides import MANAGED_TYPES, managed_types
from training_cluster.permissions.scopes import Target, scopes
from training_cluster.permissions.table import Row, load

FOLDER = Path(__file__).parent
CALLS = judged_calls.parse(judged_calls.PATH.read_text())
NOT_RECORDED = FOLDER / "rows-not-recorded.txt"
RECORDED = sorted({call.need.action for call in CALLS})
MEND = "type: make validate, then: make permissions"

Policy = list[ParsedStatement]


def policy_of(rows: list[Row], config: Mapping[str, Any] | None = None) -> Policy:
    """The deployed policy of the provider's role, from these rows of the table."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(statements, "load", lambda: rows)
        target = Target(
            scripts_bucket_arn=f"arn:aws:s3:::{judged_calls.BUCKET}",
            cluster_name="training",
            secret_arn=judged_calls.SECRET,
            progress_parameter_arn=arn("ssm", f"parameter{judged_calls.PROGRESS_PARAMETER}"),
            progress_log_group_arn=arn("logs", f"log-group:{judged_calls.PROGRESS_GROUP}:*"),
        )
        found = statements.provider_statements(target, config)
    document = json.dumps({"Statement": [each.to_statement_json() for each in found if each.actions]})
    stack = cdk.Stack()
    values = {
        cdk.Aws.PARTITION: "aws",
        cdk.Aws.REGION: REGION,
        cdk.Aws.ACCOUNT_ID: ACCOUNT,
        cdk.Aws.STACK_ID: judged_calls.OWN_STACK,
    }
    for token, value in values.items():
        document = document.replace(token, value)
    assert not stack.resolve(document).count("${Token"), document
    parsed: Policy = parse_policy_document(document)
    return parsed


def allows(policy: Policy, need: Need) -> bool:
    context = {"aws:tagkeys": None} | {key.lower(): value for key, value in need.context.items()}
    asked = EvalContext(
        principal_arn=f"arn:aws:sts::{ACCOUNT}:assumed-role/provider/provider",
        principal_type="AssumedRole",
        principal_account=ACCOUNT,
        action=need.action,
        resource_arn=need.resource,
        region=REGION,
        service_context=context,
    )
    return bool(evaluate(asked, [policy]).decision == "Allow")


def denied(policy: Policy, calls: list[RecordedCall]) -> Iterator[str]:
    """The messages of the calls that a policy denies."""
    for call in calls:
        if not allows(policy, call.need):
            yield f"{call.by}: {call.need.action} {explain(call.need, [policy], bounded=False)}"


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return load()


@pytest.fixture(scope="module")
def policy(table: list[Row]) -> Policy:
    return policy_of(table)


def without(policy: Policy, action: str) -> Policy:
    fewer = [replace(each, actions=[name for name in each.actions if name != action]) for each in policy]
    return [each for each in fewer if each.actions]  # the evaluator takes a statement without actions for all


def test_recorded_calls_need_each_of_their_rows(policy: Policy) -> None:
    assert list(denied(policy, CALLS)) == []
    assert len(RECORDED) > 100
    for action in RECORDED:
        own = [call for call in CALLS if call.need.action == action]  # no statement has a wildcard for it
        lacking = list(denied(without(policy, action), own))
        assert len(lacking) == len(own)
        assert all(f": {action} " in each for each in lacking)


def test_removed_row_is_an_action_less(table: list[Row], policy: Policy) -> None:
    rows = [row for row in table if row.action != "iam:PutRolePolicy"]
    assert policy_of(rows) == without(policy, "iam:PutRolePolicy")


KEY = arn("kms", "key/mine")
LUSTRE = {"KmsKeyId": KEY, "ImportPath": "s3://mine/x", "DataRepositoryAssociations": [{}]}
GROUPED = {"Networking": {"PlacementGroup": {"Enabled": True}}}
MANAGED: list[tuple[Mapping[str, Any], dict[str, Any]]] = [
    ({"HeadNode": {"SharedStorageType": "Efs"}}, {}),
    ({"HeadNode": {"Networking": {"ElasticIp": True}}}, {}),
    ({"Scheduling": {"SlurmQueues": [{"ComputeResources": [GROUPED]}]}}, {}),
    ({"SharedStorage": [{"StorageType": "Efs", "EfsSettings": {"KmsKeyId": KEY}}]}, {"KmsKeyId": KEY}),
    ({"SharedStorage": [{"StorageType": "Ebs", "EbsSettings": {"KmsKeyId": KEY}}]}, {"KmsKeyId": KEY}),
    (
        {"SharedStorage": [{"StorageType": "FsxLustre", "FsxLustreSettings": LUSTRE}]},
        {"KmsKeyId": KEY, "LustreConfiguration": {"ImportPath": "s3://mine/x"}},
    ),
]
"""Keys of overrides, and what properties of the resources they set."""


@pytest.mark.parametrize(("config", "properties"), MANAGED, ids=lambda each: ",".join(each)[:20])
def test_managed_types_have_their_handlers_rights(
    config: Mapping[str, Any], properties: dict[str, Any], table: list[Row]
) -> None:
    """As the registry declares them, whatever the table says."""
    policy = policy_of(table, {"Scheduling": {"SlurmQueues": []}, **config})
    for type_ in managed_types(config):
        resource = Resource(type=type_, logical_id="It", physical_id="", stack="training")
        resource = replace(resource, properties={"DataRepositoryPath": "s3://mine/x", **properties})
        lacking = [each for name in OPERATIONS for each in needs(resource, name) if not allows(policy, each)]
        assert lacking == [], type_


def test_without_its_keys_no_type_is_managed(table: list[Row], policy: Policy) -> None:
    assert {name for config, _ in MANAGED for name in managed_types(config)} == MANAGED_TYPES
    extra = {row.action for row in table if row.scopes} - {name for each in policy for name in each.actions}
    assert {"ec2:DescribeSecurityGroupRules", "elasticfilesystem:CreateFileSystem"} <= extra


def reasons() -> dict[str, str]:
    """Read why rows are not recorded: each comment is the reason of the rows below it."""
    found, reason = dict[str, str](), ""
    for line in filter(None, NOT_RECORDED.read_text().splitlines()):
        if line.startswith("# "):
            reason = line
        else:
            found[line] = reason
    return found


def test_rows_without_a_recorded_call_have_reasons(table: list[Row]) -> None:
    # Deploys with keys of overrides are judged and not recorded.
    managed = {each.name for each in scopes(Target(cluster_name="", scripts_bucket_arn="")) if each.of_types}
    idle = {row.action for row in table if set(row.scopes) - managed} - set(RECORDED)
    if os.environ.get("UPDATE_GOLDEN"):
        lines = NOT_RECORDED.read_text().splitlines(keepends=True)
        NOT_RECORDED.write_text("".join(line for line in lines if line.strip() not in RECORDED))
    listed = reasons()
    assert listed.keys() == idle, f"{NOT_RECORDED.name}: UPDATE_GOLDEN=1 removes what is recorded, you add"
    assert all(re.match("# (No local run can|Not recorded yet): ", reason) for reason in listed.values())


def test_the_table_has_calls_and_types(table: list[Row]) -> None:
    """Resource types that its cluster templates can contain, read from its source."""
    assert set(RECORDED) <= {row.action for row in table if row.scopes}, MEND
    sources = [each for each in (LIBRARY / "templates").glob("*.py") if "image" not in each.name]
    found = {name for each in sources for name in re.findall(r"\bCfn(\w+)\(", each.read_text())}
    known = {name.rpartition("::")[2] for row in table for name in row.type_names}
    assert found - known == {"Output", "Parameter", "Tag"}


def test_another_clusters_call_is_recorded_once() -> None:
    """With one cluster's name; calls of other roles are not recorded."""
    role = "TrainingClusterStack-two-ClusterProviderRoleF9FFAD13-F67BD52DE0216"
    made = {"by": "AWS::IAM::Role create", "context": {}, "resource": "arn:aws:iam::1:role/two-A-1"}
    lines = [
        json.dumps({"role": each, "action": action, **made})
        for each in (role, "TrainingCluster-Network-ZoneRole1")
        for action in ("iam:GetRole", "-")
    ]
    recording = judged_calls.add("", lines)
    assert [json.loads(line)["action"] for line in recording.splitlines()] == ["-", "iam:GetRole"]
    [call] = judged_calls.parse(recording)
    assert call.need.resource == "arn:aws:iam::1:role/training-A-1"
    assert judged_calls.types_of(recording) == {"AWS::IAM::Role"}
    assert judged_calls.add(recording, lines) == recording
