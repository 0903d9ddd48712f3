"""The judge of rights, over the emulator's own record of roles."""

import json
from typing import Any

import pytest

from rehearsal.local_aws.address import ACCOUNT, LocalAwsAddress
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.rights.denied import denied_calls, refuse_denied_calls
from rehearsal.local_aws.rights.judge import Judge
from rehearsal.local_aws.rights.need import Need, arn
from rehearsal.local_aws.rights.stacks import Stacks
from rehearsal.problems import RehearsalError
from tests.unit.rehearsal.local_aws.rights.conftest import ROLE, STATEMENT, TABLE, Put

READ = Need(action="dynamodb:GetItem", resource=TABLE)


def test_allowed_call_is_noted_once(address: LocalAwsAddress, key: str) -> None:
    judge = Judge(address)
    assert judge.denial(key, [READ, READ], by="a call") is None
    refuse_denied_calls(address)
    [line] = address.judged_calls.read_text().splitlines()
    assert json.loads(line)["action"] == "dynamodb:GetItem"


def test_a_type_without_rights_is_noted(address: LocalAwsAddress, key: str) -> None:
    assert Judge(address).denial(key, [], by="AWS::New::Type create") is None
    [line] = address.judged_calls.read_text().splitlines()
    assert json.loads(line)["action"] == "-"


def test_denied_call_fails_the_run(address: LocalAwsAddress, key: str) -> None:
    wanted = Need(action="dynamodb:GetItem", resource=f"{TABLE}-2")
    denial = Judge(address).denial(key, [READ, wanted], by="request GetItem")
    assert denial
    assert denial.need == wanted
    with pytest.raises(RehearsalError, match=r"1 calls.*\n.*GetItem on .*-2 \(nearest: statement Tables"):
        refuse_denied_calls(address)


def test_a_boundary_limits_what_the_policies_allow(address: LocalAwsAddress, key: str) -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/none"
    client("iam").put_role_permissions_boundary(RoleName=ROLE, PermissionsBoundary=boundary)
    denial = Judge(address).denial(key, [READ], by="a call")
    assert denial
    assert "the permissions boundary does not" in denial.why


def test_an_explicit_deny_is_named(address: LocalAwsAddress, put: Put, key: str) -> None:
    put({**STATEMENT, "Sid": "Never", "Effect": "Deny"}, name="deny")
    denial = Judge(address).denial(key, [READ], by="a call")
    assert denial
    assert "statement Never" in denial.why


def test_a_condition_sees_the_context_of_the_call(address: LocalAwsAddress, put: Put, key: str) -> None:
    condition = {"StringEquals": {"aws:ResourceTag/cluster": "training"}}
    put({**STATEMENT, "Condition": condition})
    tagged = Need(action=READ.action, resource=TABLE, context={"aws:ResourceTag/cluster": "training"})
    judge = Judge(address)
    assert judge.denial(key, [tagged], by="a call") is None
    assert judge.denial(key, [READ], by="a call")


def test_an_administrator_is_not_judged(address: LocalAwsAddress) -> None:
    assert Judge(address).denial("AKIA", [READ], by="a call") is None
    assert not denied_calls(address)


def test_resources_are_made_with_their_stacks_rights(address: LocalAwsAddress, key: str) -> None:
    stacks = Stacks(Judge(address))
    made: list[str] = []

    def original(_type: str, logical_id: str, _properties: dict[str, Any], stack: str) -> None:
        made.append(f"{stack} {logical_id}")

    create = stacks._create(original)
    stacks.begin(action="CreateStack", stack="training", access_key=key)
    stacks.begin(action="CreateStack", stack="mine", access_key="AKIA")
    create("AWS::DynamoDB::Table", "T", {"TableName": "t"}, "mine")
    with pytest.raises(PermissionError, match=r"dynamodb:\w+ on .*table/t .*AccessDenied"):
        create("AWS::DynamoDB::Table", "T", {"TableName": "t"}, "training")
    stacks.begin(action="DeleteStack", stack=arn("cloudformation", "stack/training/1"), access_key="AKIA")
    create("AWS::DynamoDB::Table", "T", {"TableName": "t"}, "training")
    assert made == ["mine T", "training T"]
