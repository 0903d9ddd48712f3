"""A role with one right, for the tests of the judge."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ministack.core.responses import set_request_account_id

from rehearsal.local_aws.address import ACCOUNT, LocalAwsAddress
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.rights.need import arn
from rehearsal.local_aws.rights.sessions import function_credentials

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
