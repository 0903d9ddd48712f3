"""The local CloudFormation accepts answers up to AWS's limit, and deletes what was not created whole."""

import json
from typing import Any

import pytest

from rehearsal.local_aws.cloudformation import custom_resources
from rehearsal.local_aws.emulators import hooks

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


def test_a_failed_creation_is_deleted_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[str] = []
    found = {
        "STACKS": {"training": {"StackId": "stack"}},
        "DELETE_CUSTOM_RESOURCE": lambda physical_id, *_: deleted.append(physical_id),
    }
    monkeypatch.setattr(hooks, "find", found.__getitem__)

    def fail(*_: Any) -> Any:
        custom_resources.receive(lambda *_: True)("token", ANSWER)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        custom_resources._owe_delete(fail)("Zone", {}, "training")
    assert deleted == ["use1-az1"]
