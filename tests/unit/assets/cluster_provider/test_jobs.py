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
NEW = client_error("InvocationDoesNotExist", "GetCommandInvocation")
FAILED = WAITS | {"Status": "Failed", "StandardErrorContent": "squeue: no route to host"}


def _ask(provider: Provider, head_node: str | None = "i-0123") -> list[str] | None:
    named: list[str] | None = provider.jobs.running(head_node)
    return named


def test_running_jobs_are_named_one_by_one(provider: Provider) -> None:
    provider.aws.invocations = [NEW, NEW, WAITS, WAITS, JOBS]
    assert (_ask(provider), len(provider.slept)) == (["7 gpt2 (ann, 1:02)", "8 be 9 rt (bob, 0:10)"], 5)
    provider.aws.invocations = [JOBS | {"StandardOutputContent": "\n"}]
    assert _ask(provider) == []


def test_a_hanging_squeue_is_given_up_and_ended(provider: Provider) -> None:
    provider.aws.invocations = [WAITS]
    assert _ask(provider) is None
    assert 10 <= sum(provider.slept) <= 30
    (command,) = provider.aws.commands
    assert (command["DocumentName"], command["TimeoutSeconds"]) == ("AWS-RunShellScript", 30)
    assert command["Parameters"]["executionTimeout"] == [str(int(sum(provider.slept)))]
    (line,) = command["Parameters"]["commands"]
    assert "/opt/slurm/bin" in line
    assert "--states=RUNNING" in line


@pytest.mark.parametrize(
    "answer", [NEW, *(FAILED | {"Status": s} for s in ("Failed", "Cancelled", "TimedOut"))]
)
def test_a_squeue_that_failed_leaves_the_jobs_unknown(provider: Provider, answer: Any) -> None:
    provider.aws.invocations = [answer]
    assert _ask(provider) is None
    assert len(provider.slept) == 1 or answer is NEW


@pytest.mark.parametrize("call", ["ssm.send_command", "ssm.get_command_invocation"])
def test_an_unreachable_head_node_leaves_jobs_unknown(provider: Provider, call: str) -> None:
    provider.aws.denied[call] = "InvalidInstanceId"
    assert _ask(provider) is None
    provider.aws.unreachable.add("ssm")
    assert _ask(provider) is None


def test_without_a_head_node_nothing_is_asked(provider: Provider) -> None:
    assert _ask(provider, None) is None
    assert provider.aws.commands == []
