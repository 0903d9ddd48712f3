"""Rights on the local AWS: who signs, what a role's policies allow, and the error of a denied call."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ministack.core.iam_evaluator import parse_policy_document
from ministack.core.responses import set_request_account_id

from rehearsal.local_aws.address import ACCOUNT, LocalAwsAddress
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.rights.denied import denied_calls, refuse_denied_calls
from rehearsal.local_aws.rights.gate import Gate
from rehearsal.local_aws.rights.judge import Judge
from rehearsal.local_aws.rights.nearest import explain
from rehearsal.local_aws.rights.need import Need, arn
from rehearsal.local_aws.rights.sessions import function_credentials, role_of
from rehearsal.problems import RehearsalError

ROLE = "provider"
TABLE = arn("dynamodb", "table/parallelcluster-training")
STATEMENT = {"Sid": "Tables", "Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": [TABLE]}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@pytest.fixture
def address(tmp_path: Path) -> LocalAwsAddress:
    return LocalAwsAddress(port=1, folder=tmp_path, access_key="AKIA")


Put = Callable[..., None]


@pytest.fixture
def put() -> Iterator[Put]:
    """Return a function that adds statements to the role, as a policy of its own."""
    set_request_account_id(ACCOUNT)  # the server's processes have it in their environment
    iam = client("iam")

    def put(*statements: dict[str, Any], name: str = "policy") -> None:
        iam.put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=policy(*statements))

    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=policy())
    put(STATEMENT)
    yield put
    for name in iam.list_role_policies(RoleName=ROLE)["PolicyNames"]:
        iam.delete_role_policy(RoleName=ROLE, PolicyName=name)
    iam.delete_role(RoleName=ROLE)


@pytest.fixture
def key(put: Put) -> str:
    role = arn("iam", f"role/{ROLE}", region="")
    return function_credentials({"FunctionName": "f", "Role": role})["AWS_ACCESS_KEY_ID"]


READ = Need(action="dynamodb:GetItem", resource=TABLE)


def test_allowed_calls_are_noted_once(address: LocalAwsAddress, key: str) -> None:
    """And a type without rights."""
    judge = Judge(address)
    assert judge.denial(key, [READ, READ], by="a call") is None
    assert judge.denial(key, [], by="AWS::New::Type create") is None
    refuse_denied_calls(address)
    noted = [json.loads(line)["action"] for line in address.judged_calls.read_text().splitlines()]
    assert noted == [READ.action, "-"]


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


def test_resources_are_made_with_their_stacks_rights(address: LocalAwsAddress, key: str) -> None:
    gate = Gate(address)
    stacks = gate._stacks
    made: list[str] = []

    def original(_type: str, logical_id: str, _properties: dict[str, Any], stack: str) -> None:
        made.append(f"{stack} {logical_id}")

    create = stacks._create(original)
    stacks.begin(action="CreateStack", stack="training", access_key=key)
    stacks.begin(action="CreateStack", stack="mine", access_key="AKIA")
    create("AWS::DynamoDB::Table", "T", {"TableName": "t"}, "mine")
    with pytest.raises(PermissionError, match=r"dynamodb:\w+ on .*table/t .*AccessDenied"):
        create("AWS::DynamoDB::Table", "T", {"TableName": "t"}, "training")
    name = arn("cloudformation", "stack/training/1")
    headers = _headers("AKIA", "cloudformation", content_type=FORM)
    assert not gate.refusal(SCOPE, headers, "cloudformation", f"Action=DeleteStack&StackName={name}".encode())
    create("AWS::DynamoDB::Table", "T", {"TableName": "t"}, "training")
    assert made == ["mine T", "training T"]


def test_nearest_statement_is_named_with_its_difference() -> None:
    for need, words in (
        (Need(action="dynamodb:GetItem", resource=TABLE), "Tables wants .*RequestedRegion"),
        (Need(action="dynamodb:GetItem", resource=f"{TABLE}-2"), "Tables allows it only on .*-training"),
        (Need(action="dynamodb:PutItem", resource=TABLE), "Tables, of the same service, does not name"),
        (Need(action="s3:PutObject"), "none of 1 statements names an action of s3"),
    ):
        condition = {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}
        statements = parse_policy_document({"Statement": [{**STATEMENT, "Condition": condition}]})
        assert re.search(words, explain(need, [statements], bounded=False))


SCOPE = {"method": "POST", "path": "/", "query_string": b""}
FORM = "application/x-www-form-urlencoded; charset=utf-8"


def _headers(key: str, service: str, **more: str) -> dict[str, str]:
    credential = f"AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/{service}/aws4_request, Signature=0"
    return {"host": "localhost", "authorization": credential} | {
        name.replace("_", "-"): value for name, value in more.items()
    }


def _get_item(gate: Gate, key: str, table: str) -> Any:
    headers = _headers(key, "dynamodb", x_amz_target="DynamoDB_20120810.GetItem")
    assert gate.concerns(SCOPE, headers, "dynamodb") == key.startswith("ASIA")
    return gate.refusal(SCOPE, headers, "dynamodb", json.dumps({"TableName": table, "Key": {}}).encode())


def test_a_denied_call_gets_the_services_error(address: LocalAwsAddress, key: str) -> None:
    gate = Gate(address)
    assert _get_item(gate, key, TABLE.rpartition("/")[2]) is None
    assert _get_item(gate, "AKIA", "another") is None, "the key of the run is an administrator's"
    assert Judge(address).denial("AKIA", [READ], by="a call") is None
    assert denied_calls(address) == []
    status, _, body = _get_item(gate, key, "another")
    said = json.loads(body)
    assert status == 403
    assert said["__type"].endswith("AccessDeniedException")
    assert "dynamodb:GetItem on " in said["message"]
    assert "nearest: statement Tables" in said["message"]
    [line] = denied_calls(address)
    assert "table/another" in line
    for service, action, error in (
        ("ec2", "DescribeVpcs", "UnauthorizedOperation"),
        ("iam", "GetRole", "AccessDenied"),
    ):
        headers = _headers(key, service, content_type=FORM)
        refused = gate.refusal(SCOPE, headers, service, f"Action={action}".encode())
        assert refused and refused[0] == 403
        assert error in refused[2].decode()
        assert f"{service}:{action}" in refused[2].decode()


GUARD = "arn:aws:iam::123456789012:role/a/path/guard-role"


def test_a_function_signs_with_its_own_role() -> None:
    first = function_credentials({"FunctionName": "guard", "Role": GUARD})
    other = function_credentials({"FunctionName": "guard", "Role": f"{GUARD}-2"})
    assert role_of(first["AWS_ACCESS_KEY_ID"]) == "guard-role"
    assert role_of(other["AWS_ACCESS_KEY_ID"]) == "guard-role-2"
    assert first == function_credentials({"FunctionName": "guard", "Role": GUARD})
    keys = {
        function_credentials({"FunctionName": f"f{number}", "Role": GUARD})["AWS_ACCESS_KEY_ID"][4:]
        for number in range(50)
    }
    assert len(keys) == 50
    assert all(len(key) == 16 for key in keys)
    assert role_of("AKIA") is None
