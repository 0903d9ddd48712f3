"""Policies that the stack attaches to roles of the user's, which ParallelCluster gives nothing."""

from collections.abc import Collection

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from training_cluster.acknowledgements import flat
from training_cluster.cluster.node_policies import Rights, attach_to_own_roles
from training_cluster.rules.context import read_settings

HEAD, JOBS, ALL = (f"arn:aws:iam::123456789012:role/{name}" for name in ("head", "jobs", "all"))
WORKSPACE = "arn:aws:aps:us-east-1:123456789012:workspace/ws-01234567-0123-4567-89ab-0123456789ab"
FLAGS = {
    **{"metrics": "amp", "metrics_workspace": WORKSPACE, "alarm_email": "me@example.com"},
    **{"job_emails": "me@example.com", "read_buckets": "data", "write_buckets": "out"},
}


def _attached(roles: dict[str, Collection[str]]) -> dict[str, tuple[list[str], set[str]]]:
    """Return roles and allowed or denied actions of each policy, by the kind of nodes."""
    stack = cdk.Stack(cdk.App(), "Stack")
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "bucket")
    attach_to_own_roles(stack, Rights(settings=read_settings(FLAGS), bucket=bucket), roles)
    found = {}
    for each in Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy").values():
        policy = each["Properties"]
        kind = flat(policy["ManagedPolicyName"]).partition("-own-")[2].partition("-")[0]
        actions = {
            f"{'' if statement['Effect'] == 'Allow' else 'not '}{action}"
            for statement in policy["PolicyDocument"]["Statement"]
            for action in [statement["Action"]]
            for action in (action if isinstance(action, list) else [action])
        }
        found[kind] = (policy["Roles"], actions)
    return found


def test_own_roles_get_their_nodes_rights() -> None:
    found = _attached({HEAD: {"Head"}, JOBS: {"Compute", "Login"}})
    assert {kind: roles for kind, (roles, _) in found.items()} == {
        "head": ["head"],
        "compute": ["jobs"],
        "login": ["jobs"],
    }
    everywhere = {"ssmmessages:OpenDataChannel", "s3:GetObject", "s3:ListBucket", "s3:PutObject"}
    assert all(everywhere <= actions for _, actions in found.values())
    asks = "ec2:DescribeInstanceTopology"
    sends = {"aps:RemoteWrite", "sns:Publish", "not dynamodb:UpdateItem", asks}
    assert {kind: sends & actions for kind, (_, actions) in found.items()} == {
        "head": {"aps:RemoteWrite", "sns:Publish", asks},
        "compute": {"sns:Publish", "not dynamodb:UpdateItem"},
        "login": set(),
    }


def test_a_shared_role_may_write_the_fleets_status() -> None:
    """The head node's daemon writes it; a refusal would stop the scheduling of nodes."""
    found = _attached({ALL: {"Head", "Compute"}})
    assert not [action for _, actions in found.values() for action in actions if action.startswith("not ")]
    found = _attached({ALL: {"Head", "Compute"}, JOBS: {"Compute"}})
    refused = [kind for kind, (_, actions) in found.items() if "not dynamodb:UpdateItem" in actions]
    assert (refused, found["compute"][0], found["shared"][0]) == (["compute"], ["jobs"], ["all"])
    assert _attached({}) == {}
