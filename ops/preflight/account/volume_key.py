"""Checks the key of the nodes' root volumes: ParallelCluster uses the account's default key for EBS.

Three principals launch nodes with it, and have no rights to a customer managed key: the provider's role (head
node), the head node's role (compute nodes) and AWS's role for Auto Scaling (login nodes), whose rights nobody
can extend. The key's policy can allow all of them at once, with the statement of AWS's own key aws/ebs.
Sources: EBS guide, "Permissions" of encryption; Auto Scaling guide, "Required AWS KMS key policy".
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ops.account.session import ClientOf
from ops.preflight.finding import Finding

_CHECK = "key of the root volumes"
_AWS_KEY = "alias/aws/ebs"
_GRANT = {"kms:*", "kms:CreateGrant", "*"}
_ACTIONS = ("kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*")
_RESET = "aws ec2 reset-ebs-default-kms-key-id, which takes AWS's own key for new volumes"
_WHO = (
    "the provider's role (head node), the head node's role (compute nodes) and AWSServiceRoleForAutoScaling "
    "(login nodes)"
)
Statement = Mapping[str, Any]


def check_volume_key(account: str, client: ClientOf) -> Iterator[Finding]:
    """Check that nodes can be launched with the account's default key for EBS volumes."""
    ec2 = client("ec2")
    name = str(ec2.get_ebs_default_kms_key_id()["KmsKeyId"])
    if name.endswith(_AWS_KEY):
        yield Finding(check=_CHECK, found="AWS's own key")
        return
    key = client("kms").describe_key(KeyId=name)["KeyMetadata"]
    if key["KeyManager"] == "AWS":
        yield Finding(check=_CHECK, found="AWS's own key")
        return
    arn = str(key["Arn"])
    yield Finding(check=_CHECK, found=f"{arn}, a customer managed key")
    if key["AWSAccountId"] != account:
        found = f"of another account, {key['AWSAccountId']}: the roles of a cluster have no right to it"
        yield Finding(check=f"{_CHECK}: account", found=found, verdict="problem", mend=_RESET)
        return
    if not key["Enabled"]:
        mend = f"aws kms enable-key --key-id {arn}"
        yield Finding(check=f"{_CHECK}: state", found=str(key["KeyState"]), verdict="problem", mend=mend)
    policy = json.loads(client("kms").get_key_policy(KeyId=arn, PolicyName="default")["Policy"])
    services = _services(ec2.meta.region_name, ec2.meta.partition)
    yield _judge(_listed(policy["Statement"]), arn, account, services)


def _judge(statements: list[Statement], arn: str, account: str, services: list[str]) -> Finding:
    check = f"{_CHECK}: policy"
    granting = [each for each in statements if _grants(each, services)]
    named = {principal for each in granting for principal in _principals(each)}
    if "*" in named:
        return Finding(check=check, found="allows the launch of nodes")
    wanted = {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": [*_ACTIONS, "kms:ReEncrypt*"],
        "Resource": "*",
        "Condition": {"StringEquals": {"kms:CallerAccount": account, "kms:ViaService": services}},
    }
    is_delegated = all(each == account or each.endswith(f":iam::{account}:root") for each in named)
    return Finding(
        check=check,
        found=f"no node can be launched with it: nothing allows {_WHO} to use it"
        if is_delegated
        else f"names its users; these must include {_WHO}",
        verdict="problem" if is_delegated else "warning",
        mend=f"aws kms get-key-policy --key-id {arn} --policy-name default, and add by put-key-policy:\n"
        f"{json.dumps(wanted)}\nor: {_RESET}",
    )


def _grants(statement: Statement, services: list[str]) -> bool:
    """Return True if a statement concerns launches: CreateGrant, and not only through another service."""
    if statement["Effect"] != "Allow" or not _GRANT & set(_listed(statement.get("Action", []))):
        return False
    conditions = statement.get("Condition", {}).values()
    via = [each for operator in conditions for each in _listed(operator.get("kms:ViaService", []))]
    return not via or not set(services).isdisjoint(via)


def _principals(statement: Statement) -> list[str]:
    principal = statement.get("Principal", {})
    return ["*"] if principal == "*" else [str(each) for each in _listed(principal.get("AWS", []))]


def _services(region: str, partition: str) -> list[str]:
    """Return EC2's name in KMS conditions; both forms in China, because no source names the right one."""
    name = f"ec2.{region}.amazonaws.com"
    return [name, f"{name}.cn"] if partition == "aws-cn" else [name]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
