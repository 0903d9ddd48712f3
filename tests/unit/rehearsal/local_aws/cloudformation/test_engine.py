"""The local AWS's changes of an emulator's answers: AWS's own messages, and no other change."""

import json
import string
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from rehearsal.local_aws.secrets import with_exclusions
from tests.in_process import aws
from tests.unit.ops.fake_account import Account
from training_cluster.flags.given import GIVEN_FLAGS


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
