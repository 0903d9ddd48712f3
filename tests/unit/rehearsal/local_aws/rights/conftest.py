"""A role with one right, for the tests of the judge."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ministack.core.responses import set_request_account_id

from rehearsal.local_aws.address import ACCOUNT, LocalAwsAddress
from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.rights.need import arn
from rehearsal.local_aws.rights.sessions import function_credentials

TABLE = arn("dynamodb", "table/parallelcluster-training")
STATEMENT = {"Sid": "Tables", "Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": [TABLE]}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@pytest.fixture
def address(tmp_path: Path) -> LocalAwsAddress:
    return LocalAwsAddress(port=1, folder=tmp_path, access_key="AKIA")


@pytest.fixture
def role() -> Iterator[dict[str, Any]]:
    set_request_account_id(ACCOUNT)  # the server's processes have it in their environment
    roles = hooks.find(ministack_hooks.ROLES)
    record = {
        "RoleName": "provider",
        "Arn": f"arn:aws:iam::{ACCOUNT}:role/provider",
        "RoleId": "AROA0",
        "InlinePolicies": {"policy": policy(STATEMENT)},
        "AttachedPolicies": [],
        "Tags": [],
    }
    roles["provider"] = record
    yield record
    roles.pop("provider")


@pytest.fixture
def key(role: dict[str, Any]) -> str:
    return function_credentials({"FunctionName": "f", "Role": role["Arn"]})["AWS_ACCESS_KEY_ID"]
