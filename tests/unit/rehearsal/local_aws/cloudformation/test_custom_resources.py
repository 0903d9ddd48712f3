"""The local CloudFormation accepts answers of custom resources up to AWS's limit."""

import json
from typing import Any

import pytest

from rehearsal.local_aws.cloudformation import custom_resources

ANSWER = {
    "Status": "SUCCESS",
    "StackId": "stack",
    "LogicalResourceId": "Zone",
    "PhysicalResourceId": "use1-az1",
}
MOST = 4096


@pytest.mark.parametrize(("too_many", "status"), [(0, "SUCCESS"), (1, "FAILED")])
def test_an_answer_of_more_than_4096_bytes_fails(too_many: int, status: str) -> None:
    delivered: list[dict[str, Any]] = []

    def deliver(_token: str, response: dict[str, Any]) -> bool:
        delivered.append(response)
        return True

    data = {"Data": {"Value": ""}}
    room = MOST - len(json.dumps(ANSWER | data, separators=(",", ":")))
    data["Data"]["Value"] = "x" * (room + too_many)
    assert custom_resources.receive(deliver)("token", ANSWER | data)
    assert (delivered[0]["Status"], delivered[0]["PhysicalResourceId"]) == (status, "use1-az1")
    assert ("too long" in delivered[0].get("Reason", "")) == (status == "FAILED")
