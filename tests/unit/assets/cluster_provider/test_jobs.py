"""The names of the jobs that run, asked of the head node; not to know them is told apart from none."""

from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import client_error
from tests.unit.assets.cluster_provider.fakes.provider import Provider

WAITS: dict[str, Any] = {"Status": "InProgress", "StandardOutputContent": "", "StandardErrorContent": ""}
JOBS = WAITS | {
    "Status": "Success",
    "StandardOutputContent": "7 gpt2 (ann, 1:02)/0/\n8 be\n9 rt (bob, 0:10)/0/\n",
}
FAILED = WAITS | {"Status": "Failed", "StandardErrorContent": "squeue: no route to host"}


def _ask(provider: Provider, head_node: str | None = "i-0123") -> list[str] | None:
    named: list[str] | None = provider.jobs.running(head_node)
    return named


def test_running_jobs_are_named_one_by_one(provider: Provider) -> None:
    provider.aws.invocations = [JOBS]
    assert _ask(provider) == ["7 gpt2 (ann, 1:02)", "8 be 9 rt (bob, 0:10)"]


def test_no_job_is_an_empty_list(provider: Provider) -> None:
    provider.aws.invocations = [JOBS | {"StandardOutputContent": "\n"}]
    assert _ask(provider) == []


def test_running_jobs_are_read_from_parallelclusters_slurm(
    provider: Provider,
) -> None:
    provider.aws.invocations = [JOBS]
    _ask(provider)
    (command,) = provider.aws.commands
    assert (command["InstanceIds"], command["DocumentName"]) == (["i-0123"], "AWS-RunShellScript")
    (line,) = command["Parameters"]["commands"]
    assert "/opt/slurm/bin" in line
    assert "--states=RUNNING" in line


def test_a_hanging_squeue_is_ended(provider: Provider) -> None:
    provider.aws.invocations = [WAITS]
    _ask(provider)
    (command,) = provider.aws.commands
    assert command["TimeoutSeconds"] == 30
    assert command["Parameters"]["executionTimeout"] == [str(int(sum(provider.slept)))]


def test_the_answer_is_waited_for(provider: Provider) -> None:
    provider.aws.invocations = [WAITS, WAITS, JOBS]
    assert _ask(provider) == ["7 gpt2 (ann, 1:02)", "8 be 9 rt (bob, 0:10)"]
    assert len(provider.slept) == 3


def test_a_new_command_is_waited_for(provider: Provider) -> None:
    unknown = client_error("InvocationDoesNotExist", "GetCommandInvocation")
    provider.aws.invocations = [unknown, unknown, JOBS]
    assert _ask(provider) == ["7 gpt2 (ann, 1:02)", "8 be 9 rt (bob, 0:10)"]
    provider.aws.invocations = [unknown]
    assert _ask(provider) is None


def test_a_silent_head_node_is_given_up(provider: Provider) -> None:
    provider.aws.invocations = [WAITS]
    assert _ask(provider) is None
    assert 10 <= sum(provider.slept) <= 30


@pytest.mark.parametrize("status", ["Failed", "Cancelled", "TimedOut"])
def test_a_squeue_that_failed_leaves_the_jobs_unknown(provider: Provider, status: str) -> None:
    provider.aws.invocations = [FAILED | {"Status": status}]
    assert _ask(provider) is None
    assert len(provider.slept) == 1


@pytest.mark.parametrize("call", ["ssm.send_command", "ssm.get_command_invocation"])
def test_an_unreachable_head_node_leaves_jobs_unknown(provider: Provider, call: str) -> None:
    provider.aws.denied[call] = "InvalidInstanceId"
    assert _ask(provider) is None


def test_without_connection_the_jobs_are_unknown(provider: Provider) -> None:
    provider.aws.unreachable.add("ssm")
    assert _ask(provider) is None


def test_without_a_head_node_nothing_is_asked(provider: Provider) -> None:
    assert _ask(provider, None) is None
    assert provider.aws.commands == []
