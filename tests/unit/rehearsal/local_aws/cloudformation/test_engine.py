"""The local CloudFormation: answers of custom resources up to AWS's limit, secrets, users, log groups."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.local_aws.cloudformation import custom_resources
from rehearsal.local_aws.cloudformation.handlers import original
from rehearsal.local_aws.emulators import hooks, ministack_client
from rehearsal.local_aws.secrets import with_exclusions
from tests.in_process import aws
from tests.unit.ops.fake_account import Account
from training_cluster.flags.given import GIVEN_FLAGS

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


def test_generated_secret_has_the_templates_exclusions() -> None:
    for wanted, excluded in (
        ({}, ""),
        ({"ExcludePunctuation": True}, string.punctuation),
        ({"ExcludePunctuation": "true", "ExcludeCharacters": "l"}, "l" + string.punctuation),
        ({"ExcludeNumbers": True, "ExcludePunctuation": False}, string.digits),
    ):
        exact = with_exclusions({"GenerateSecretString": wanted})
        assert exact["GenerateSecretString"].get("ExcludeCharacters", "") == excluded


def test_a_kept_rehearsal_refuses_users() -> None:
    """Its folder has no /etc to make them in; the refusal comes before any change of the cluster."""
    account = Account(real=True)
    program, cloudformation = (
        Path(aws()._folder.name) / "head-node-program.json",
        account.client("cloudformation"),
    )
    note = {"Note": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "-"}}}
    templates = [
        json.dumps({"Resources": note, "Metadata": {GIVEN_FLAGS: {"family": "m6i", **flags}}})
        for flags in ({"users": "users.yaml"}, {})
    ]
    program.write_text("[]")
    try:
        with pytest.raises(ClientError, match=r"cannot make users.*sudo make rehearse USERS=2"):
            cloudformation.create_stack(StackName="people", TemplateBody=templates[0])
        cloudformation.create_stack(StackName="nobody", TemplateBody=templates[1])
    finally:
        program.unlink()
    cloudformation.create_stack(StackName="people", TemplateBody=templates[0])
    aws().empty()


@pytest.mark.usefixtures("client")
def test_only_a_functions_existing_group_is_refused() -> None:
    kept = ["/aws/parallelcluster/a", "/aws/lambda/pcluster-CleanupResources-1"]
    for name in ("/aws/lambda/copy", *kept):
        ministack_client.client("logs").create_log_group(logGroupName=name)
    create = original("AWS::Logs::LogGroup")["create"]
    with pytest.raises(ValueError, match=r"AWS::Logs::LogGroup.*/aws/lambda/copy.*already exists"):
        create("Logs", {"LogGroupName": "/aws/lambda/copy"}, "stack")
    for name in (*kept, "/aws/lambda/new"):
        assert create("Logs", {"LogGroupName": name}, "stack")[0] == name
