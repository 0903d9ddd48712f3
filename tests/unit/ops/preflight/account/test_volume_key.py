"""`trainctl preflight`: the account's default key for EBS volumes, with which every node is launched."""

import json
from typing import Any

import pytest

from ops.preflight.account.volume_key import check_volume_key
from ops.preflight.finding import Finding
from tests.unit.ops.fake_account import Account, Refused

ACCOUNT, OTHER = "123456789012", "210987654321"
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d"
ROOT = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
VIA_EC2 = {"StringEquals": {"kms:CallerAccount": ACCOUNT, "kms:ViaService": ["ec2.us-east-1.amazonaws.com"]}}
VIA_RDS = {"StringEquals": {"kms:ViaService": "rds.us-east-1.amazonaws.com"}}


def allow(principal: Any, action: Any = "kms:*", condition: Any = None) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": principal, "Action": action, "Resource": "*"}
    return statement | ({"Condition": condition} if condition else {})


DEFAULT = allow(ROOT)
"""As KMS writes it for a new key: it leaves all to the policies of roles."""
OPEN = allow({"AWS": "*"}, ["kms:CreateGrant", "kms:Decrypt"], VIA_EC2)


def account(*statements: Any, manager: str = "CUSTOMER", owner: str = ACCOUNT, **more: Any) -> Account:
    metadata: dict[str, Any] = {
        "KeyId": "0a1b2c3d",
        "Arn": KEY.replace(ACCOUNT, owner),
        "AWSAccountId": owner,
    }
    metadata |= {"KeyManager": manager, "Enabled": True, "KeyState": "Enabled"} | more
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    return Account(
        {
            "GetEbsDefaultKmsKeyId": {"KmsKeyId": metadata["Arn"]},
            "DescribeKey": {"KeyMetadata": metadata},
            "GetKeyPolicy": {"Policy": json.dumps(policy)},
        }
    )


def last(found: Account) -> Finding:
    *_, finding = check_volume_key(ACCOUNT, found.client)
    return finding


def test_the_default_key_of_aws_is_ok() -> None:
    by_alias = Account({"GetEbsDefaultKmsKeyId": {"KmsKeyId": "alias/aws/ebs"}})
    for found in (by_alias, account(manager="AWS")):
        (finding,) = check_volume_key(ACCOUNT, found.client)
        assert finding.verdict == "ok"


def test_a_key_closed_to_clusters_is_a_problem() -> None:
    for statements in (
        [DEFAULT],
        [DEFAULT, allow({"AWS": "*"}, "kms:CreateGrant", VIA_RDS)],
        [allow(ROOT), OPEN | {"Effect": "Deny"}],
    ):
        finding = last(account(*statements))
        assert finding.verdict == "problem"
        for who in ("provider's role", "head node's role", "AWSServiceRoleForAutoScaling"):
            assert who in finding.found


def test_the_statement_to_add_mends_the_policy() -> None:
    mend = last(account(DEFAULT)).mend
    (statement,) = (json.loads(line) for line in mend.splitlines() if line.startswith("{"))
    assert (last(account(DEFAULT, statement)).verdict, statement["Condition"]) == ("ok", VIA_EC2)
    assert "kms:GenerateDataKey*" in statement["Action"]
    assert f"aws kms get-key-policy --key-id {KEY}" in mend


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}, {"AWS": ["*"]}])
def test_opening_the_key_to_the_account_is_enough(principal: Any) -> None:
    assert last(account(DEFAULT, OPEN | {"Principal": principal})).verdict == "ok"


def test_a_policy_that_names_roles_is_a_warning() -> None:
    role = {"AWS": f"arn:aws:iam::{ACCOUNT}:role/parallelcluster/training/head"}
    assert last(account(DEFAULT, allow(role))).verdict == "warning"


def test_foreign_and_disabled_keys_are_problems() -> None:
    abroad = last(account(OPEN, owner=OTHER))
    assert (abroad.verdict, OTHER in abroad.found) == ("problem", True)
    found = list(check_volume_key(ACCOUNT, account(OPEN, Enabled=False, KeyState="PendingDeletion").client))
    assert [each.found for each in found if each.verdict == "problem"] == ["PendingDeletion"]


def test_a_key_with_unreadable_policy_is_still_named() -> None:
    unread = account(DEFAULT)
    unread.answers["GetKeyPolicy"] = Refused("AccessDeniedException", "perform: kms:GetKeyPolicy on")
    findings = check_volume_key(ACCOUNT, unread.client)
    assert KEY in next(findings).found
