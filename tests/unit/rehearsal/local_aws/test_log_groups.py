"""The local CloudFormation refuses a log group that a function's first call has created."""

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.local_aws.cloudformation.handlers import original


def test_only_a_functions_existing_group_is_refused(client: Callable[[str], Any]) -> None:
    kept = ["/aws/parallelcluster/a", "/aws/lambda/pcluster-CleanupResources-1"]
    for name in ("/aws/lambda/copy", *kept):
        client("logs").create_log_group(logGroupName=name)
    create = original("AWS::Logs::LogGroup")["create"]
    with pytest.raises(ValueError, match=r"AWS::Logs::LogGroup.*/aws/lambda/copy.*already exists"):
        create("Logs", {"LogGroupName": "/aws/lambda/copy"}, "stack")
    for name in (*kept, "/aws/lambda/new"):
        assert create("Logs", {"LogGroupName": name}, "stack")[0] == name
