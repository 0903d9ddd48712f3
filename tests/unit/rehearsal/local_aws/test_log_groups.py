"""The local CloudFormation refuses a log group that a function's first call has created."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rehearsal.local_aws import log_groups
from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators import hooks, ministack_hooks

TYPE = "AWS::Logs::LogGroup"
Create = Callable[[str], Any]


@pytest.fixture
def create() -> Iterator[Create]:
    before, groups = handlers.original(TYPE), hooks.find(ministack_hooks.LOG_GROUPS)
    log_groups.install()
    try:
        yield lambda name: handlers.original(TYPE)["create"]("Logs", {"LogGroupName": name}, "stack")
    finally:
        handlers.register(TYPE, before)
        for name in list(groups):
            del groups[name]


def test_the_group_that_lambda_created_is_refused(create: Create) -> None:
    hooks.find(ministack_hooks.LOG_GROUPS)["/aws/lambda/copy"] = {"streams": {}}
    with pytest.raises(ValueError, match=r"AWS::Logs::LogGroup.*/aws/lambda/copy.*already exists"):
        create("/aws/lambda/copy")


@pytest.mark.parametrize("name", ["/aws/parallelcluster/a", "/aws/lambda/pcluster-CleanupResources-1"])
def test_a_group_that_parallelcluster_names_is_replaced(create: Create, name: str) -> None:
    hooks.find(ministack_hooks.LOG_GROUPS)[name] = {"streams": {}}
    assert create(name)[0] == name


def test_a_group_that_is_new_is_created(create: Create) -> None:
    assert create("/aws/lambda/copy")[0] == "/aws/lambda/copy"
