"""`trainctl verify`: each verdict of each check."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from ops.verify.check import Result
from ops.verify.checks import CHECKS, run_checks
from tests.unit.ops.fake_account import Account, Refused

AT = datetime.datetime(2026, 11, 5, tzinfo=datetime.UTC)
DENIED = Refused("AccessDenied", "111122223333 may not")
HEAD_NODE = "i-0aaaaaaaaaaaaaaaa"
COMMAND = "00000000-0000-0000-0000-000000000000"
SAID = {
    "scontrol show config": "JobRequeue              = 1\nSuspendTime             = 600 sec\n",
    "stat --file-system --format=%T /fsx": "lustre\n",
    "'--format=%U %A'": "root -rwxr-xr-x\n",
    "bootstrap.log": "01:19:36 bootstrap: step 60-install-job-environment: done, 0 s\n",
}


class Deployed:
    """A deployed cluster, of which a test changes one thing.

    Args:
        minutes: time of the creation of ParallelCluster's stack.
        said: changes of the head node's answers, by a part of the command.
        answers: changes of AWS's answers, by operation.
    """

    def __init__(self, *, minutes: float = 12, said: dict[str, str] | None = None, **answers: Any) -> None:
        self._said = SAID | (said or {})
        self._script = ""
        stack = {
            "StackName": "TrainingClusterStack",
            "StackStatus": "CREATE_COMPLETE",
            "CreationTime": AT,
            "Outputs": [{"OutputKey": "HeadNodeInstanceId", "OutputValue": HEAD_NODE}],
        }
        instance = {
            "InstanceId": HEAD_NODE,
            "MetadataOptions": {"HttpTokens": "required"},
            "SecurityGroups": [{"GroupId": "sg-1"}],
        }
        self.account = Account(
            {
                "DescribeStacks": {"Stacks": [stack]},
                "DescribeStackEvents": {"StackEvents": events(minutes)},
                "SendCommand": self._send,
                "GetCommandInvocation": lambda _: {
                    "Status": "Success",
                    "StandardOutputContent": next(
                        text for words, text in self._said.items() if words in self._script
                    ),
                },
                "DescribeInstances": {"Reservations": [{"Instances": [instance]}]},
                "DescribeSecurityGroups": {
                    "SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": [rule()]}]
                },
                "DescribeVolumes": {"Volumes": [{"Encrypted": True}]},
                "DescribeStackResources": {"StackResources": [link("dra-0aaaaaaaaaaaaaaaa")]},
                "DescribeDataRepositoryAssociations": {"Associations": [{"Lifecycle": "AVAILABLE"}]},
                "DescribeAlarms": {"MetricAlarms": [alarm("OK")]},
                **answers,
            }
        )

    def _send(self, asked: dict[str, Any]) -> dict[str, Any]:
        (self._script,) = asked["Parameters"]["commands"]
        return {"Command": {"CommandId": COMMAND}}

    def results(self) -> list[Result]:
        found = run_checks("training", self.account.client)
        assert "111122223333" not in str(found)
        assert HEAD_NODE not in str(found)
        return found


def events(minutes: float, **more: Any) -> list[dict[str, Any]]:
    times = {"CREATE_IN_PROGRESS": AT, "CREATE_COMPLETE": AT + datetime.timedelta(minutes=minutes)}
    own = {"StackId": "arn", "PhysicalResourceId": "arn", "StackName": "training", "EventId": "1"}
    own["ResourceType"] = "AWS::CloudFormation::Stack"
    return [own | {"ResourceStatus": key, "Timestamp": at, **more} for key, at in times.items()]


def rule(cidr: str = "203.0.113.0/24") -> dict[str, Any]:
    return {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": cidr}]}


def link(id_: str) -> dict[str, Any]:
    type_ = "AWS::FSx::DataRepositoryAssociation"
    state = {"ResourceStatus": "CREATE_COMPLETE", "Timestamp": AT}
    return {"PhysicalResourceId": id_, "LogicalResourceId": "Link", "ResourceType": type_, **state}


def alarm(state: str) -> dict[str, str]:
    return {"AlarmName": "TrainingCluster_training_HeadNodeDead", "StateValue": state}


def test_a_cluster_as_expected_holds() -> None:
    found = Deployed().results()
    assert {each.verdict for each in found} == {"held"}
    assert [each.id for each in found] == [check.id for check in CHECKS]


OPEN = {"SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": [rule("0.0.0.0/0")]}]}
OLD = {
    "InstanceId": HEAD_NODE,
    "MetadataOptions": {"HttpTokens": "optional"},
    "SecurityGroups": [{"GroupId": "sg-1"}],
}


@pytest.mark.parametrize(
    ("change", "check", "verdict", "seen"),
    [
        ({"minutes": 31}, "cluster-stack-time", "differs", "31.0 minutes"),
        (
            {
                "DescribeStackEvents": {
                    "StackEvents": events(9, ResourceStatusReason="x is not authorized to y")
                }
            },
            "denied-calls",
            "differs",
            "AWS::CloudFormation::Stack",
        ),
        (
            {"said": {"scontrol show config": "JobRequeue = 0\nSuspendTime = 600 sec"}},
            "slurm-requeue",
            "differs",
            "0",
        ),
        (
            {"said": {"scontrol show config": "JobRequeue = 1\n"}},
            "slurm-scale-down",
            "differs",
            "no SuspendTime",
        ),
        (
            {
                "said": {"stat --file-system": "xfs\n"}
                | SAID
                | {"stat --file-system --format=%T /fsx": "xfs\n"}
            },
            "lustre-mounted",
            "differs",
            "/fsx is xfs",
        ),
        ({"said": {"'--format=%U %A'": "root -rwxrwxr-x"}}, "training-scripts", "differs", "root -rwxrwxr-x"),
        ({"said": {"'--format=%U %A'": "ubuntu -rwxr-xr-x"}}, "training-scripts", "differs", "ubuntu"),
        (
            {"said": {"bootstrap.log": "bootstrap: step 20-x: failed, 3 s"}},
            "bootstrap-steps",
            "differs",
            "1 failed",
        ),
        ({"said": {"bootstrap.log": ""}}, "bootstrap-steps", "differs", "in 0 lines"),
        ({"DescribeSecurityGroups": OPEN}, "no-public-ssh", "differs", "1 rules"),
        ({"DescribeSecurityGroups": DENIED}, "no-public-ssh", "could not look", "DescribeSecurityGroups"),
        ({"DescribeVolumes": {"Volumes": [{"Encrypted": False}]}}, "encrypted-volumes", "differs", "0 of 1"),
        ({"DescribeVolumes": {"Volumes": []}}, "encrypted-volumes", "differs", "0 of 0"),
        (
            {"DescribeDataRepositoryAssociations": {"Associations": [{"Lifecycle": "MISCONFIGURED"}]}},
            "bucket-links",
            "differs",
            "MISCONFIGURED",
        ),
        ({"DescribeStackResources": {"StackResources": []}}, "bucket-links", "held", "no links"),
        (
            {"DescribeAlarms": {"MetricAlarms": [alarm("ALARM")]}},
            "alarms",
            "differs",
            "in alarm: HeadNodeDead",
        ),
        ({"DescribeAlarms": {"MetricAlarms": []}}, "alarms", "differs", "0 alarms"),
        ({"DescribeInstances": {"Reservations": [{"Instances": [OLD]}]}}, "imdsv2", "differs", "optional"),
    ],
)
def test_a_check_that_does_not_hold_hides_no_other(
    change: dict[str, Any], check: str, verdict: str, seen: str
) -> None:
    found = {each.id: each for each in Deployed(**change).results()}
    one = found.pop(check)
    assert one.verdict == verdict
    assert seen in one.seen
    assert {each.verdict for each in found.values()} == {"held"}


def test_without_run_command_only_the_head_nodes_checks_could_not_look() -> None:
    found = {each.id: each.verdict for each in Deployed(SendCommand=DENIED).results()}
    could_not = {name for name, verdict in found.items() if verdict == "could not look"}
    assert could_not == {
        "slurm-requeue",
        "slurm-scale-down",
        "lustre-mounted",
        "training-scripts",
        "bootstrap-steps",
    }
    assert set(found.values()) == {"could not look", "held"}


def test_each_check_has_an_id_of_its_own_and_says_what_a_rehearsal_cannot_show() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(check.not_in_rehearsal.endswith(".") and check.claim.endswith(".") for check in CHECKS)
