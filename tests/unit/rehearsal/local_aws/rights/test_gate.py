"""The check of a request before any service answers it."""

import json
from typing import Any

import pytest

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.rights.denied import denied_calls
from rehearsal.local_aws.rights.gate import Gate
from tests.unit.rehearsal.local_aws.rights.conftest import TABLE

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


def test_a_call_within_the_rights_is_answered(address: LocalAwsAddress, key: str) -> None:
    assert _get_item(Gate(address), key, TABLE.rpartition("/")[2]) is None


def test_another_call_gets_the_services_error(address: LocalAwsAddress, key: str) -> None:
    status, _, body = _get_item(Gate(address), key, "another")
    said = json.loads(body)
    assert status == 403
    assert said["__type"].endswith("AccessDeniedException")
    assert "dynamodb:GetItem on " in said["message"]
    assert "nearest: statement Tables" in said["message"]
    [line] = denied_calls(address)
    assert "table/another" in line


@pytest.mark.parametrize(
    ("service", "action", "error"),
    [("ec2", "DescribeVpcs", "UnauthorizedOperation"), ("iam", "GetRole", "AccessDenied")],
)
def test_services_of_both_emulators_are_judged(
    address: LocalAwsAddress, key: str, service: str, action: str, error: str
) -> None:
    headers = _headers(key, service, content_type=FORM)
    status, _, body = Gate(address).refusal(SCOPE, headers, service, f"Action={action}".encode()) or (
        0,
        [],
        b"",
    )
    assert status == 403
    assert error in body.decode()
    assert f"{service}:{action}" in body.decode()


def test_the_key_of_the_run_is_an_administrators(address: LocalAwsAddress) -> None:
    assert _get_item(Gate(address), "AKIA", "another") is None
    assert denied_calls(address) == []
