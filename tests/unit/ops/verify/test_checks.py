"""`trainctl verify`: each verdict of each check."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from ops.verify.checks import run_checks
from tests.unit.ops.fake_account import Account, Refused

AT = datetime.datetime(2026, 11, 5, tzinfo=datetime.UTC)
DENIED = Refused("AccessDenied", "111122223333 may not")


def verdicts(minutes: float = 12, config: str = "JobRequeue              = 1", **more: Any) -> dict[str, str]:
    stack = {
        "StackName": "TrainingClusterStack",
        "StackStatus": "CREATE_COMPLETE",
        "CreationTime": AT,
        "Outputs": [{"OutputKey": "HeadNodeInstanceId", "OutputValue": "i-0aaaaaaaaaaaaaaaa"}],
    }
    times = {"CREATE_IN_PROGRESS": AT, "CREATE_COMPLETE": AT + datetime.timedelta(minutes=minutes)}
    own = {"StackId": "arn", "PhysicalResourceId": "arn", "StackName": "training", "EventId": "1"}
    account = Account(
        {
            "DescribeStacks": {"Stacks": [stack]},
            "DescribeStackEvents": {
                "StackEvents": [own | {"ResourceStatus": key, "Timestamp": at} for key, at in times.items()]
            },
            "SendCommand": {"Command": {"CommandId": "00000000-0000-0000-0000-000000000000"}},
            "GetCommandInvocation": {"Status": "Success", "StandardOutputContent": config},
            **more,
        }
    )
    found = run_checks("training", account.client)
    assert "111122223333" not in str(found)
    return {each.id: each.verdict for each in found}


def test_a_cluster_as_expected_holds() -> None:
    assert set(verdicts().values()) == {"held"}


@pytest.mark.parametrize(
    ("account", "check", "verdict"),
    [
        ({"minutes": 31}, "cluster-stack-time", "differs"),
        ({"DescribeStackEvents": DENIED}, "cluster-stack-time", "could not look"),
        ({"config": "JobRequeue = 0"}, "slurm-requeue", "differs"),
        ({"SendCommand": DENIED}, "slurm-requeue", "could not look"),
    ],
)
def test_a_check_that_does_not_hold_hides_no_other(account: Any, check: str, verdict: str) -> None:
    found = verdicts(**account)
    assert found.pop(check) == verdict
    assert set(found.values()) == {"held"}
