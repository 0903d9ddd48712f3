"""The local CloudFormation refuses a log group that a function's first call has created."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rehearsal.local_aws import log_groups
from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators.ministack_client import client

TYPE = "AWS::Logs::LogGroup"
Create = Callable[[str], Any]


@pytest.fixture
def create() -> Iterator[Create]:
    before = handlers.original(TYPE)
    log_groups.install()
    try:
        yield lambda name: handlers.original(TYPE)["create"]("Logs", {"LogGroupName": name}, "stack")
    finally:
        handlers.register(TYPE, before)
        for group in client("logs").describe_log_groups()["logGroups"]:
            client("logs").delete_log_group(logGroupName=group["logGroupName"])


def test_only_a_functions_existing_group_is_refused(create: Create) -> None:
    kept = ["/aws/parallelcluster/a", "/aws/lambda/pcluster-CleanupResources-1"]
    for name in ("/aws/lambda/copy", *kept):
        client("logs").create_log_group(logGroupName=name)
    with pytest.raises(ValueError, match=r"AWS::Logs::LogGroup.*/aws/lambda/copy.*already exists"):
        create("/aws/lambda/copy")
    for name in (*kept, "/aws/lambda/new"):
        assert create(name)[0] == name
