"""The local CloudFormation refuses a log group that a function's first call has created."""

import pytest

from rehearsal.local_aws.cloudformation.handlers import original
from rehearsal.local_aws.emulators import ministack_client


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
