"""Before an update: the jobs that run, asked of the head node, and refusals of what no cluster can have."""

import json
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import client_error
from tests.unit.assets.cluster_provider.fakes.library import config
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

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


def test_running_jobs_are_named_one_by_one(provider: Provider) -> None:
    assert _ask(provider, None) is None
    assert provider.aws.commands == []
    provider.aws.invocations = [NEW, NEW, WAITS, WAITS, JOBS]
    assert (_ask(provider), len(provider.slept)) == (["7 gpt2 (ann, 1:02)", "8 be 9 rt (bob, 0:10)"], 5)
    provider.aws.invocations = [JOBS | {"StandardOutputContent": "\n"}]
    assert _ask(provider) == []


BOUNDARY, ANOTHER = ("arn:aws:iam::123456789012:policy/a", "arn:aws:iam::123456789012:policy/b")


def _config(mount: str = "/efs", *, boundary: str = "", capacity: str = "ONDEMAND") -> dict[str, Any]:
    home = {"MountDir": mount, "StorageType": "Efs", "Name": "efs", "EfsSettings": {"FileSystemId": "fs-1"}}
    bound = {"Iam": {"PermissionsBoundary": boundary}} if boundary else {}
    return config(capacity) | {"SharedStorage": [home]} | bound


def _update(provider: Provider, before: dict[str, Any], after: dict[str, Any]) -> Asked:
    provider.library.exists("CREATE_COMPLETE")
    provider.library.config |= before | {"Tags": provider.library.config["Tags"]}
    provider.aws.parent_status = "UPDATE_IN_PROGRESS"
    return provider.ask(provider.event("Update", ClusterConfiguration=json.dumps(after)))


MOVED = "/efs: fs-1 -> nothing; /home: nothing -> fs-1"


@pytest.mark.parametrize("fleet", ["RUNNING", "STOPPED"])
@pytest.mark.parametrize(
    ("before", "after", "change", "flags"),
    [
        (_config(), _config("/home"), f"({MOVED})", "flags (home, fsx_id, efs_id)"),
        *(
            (
                _config(boundary=before),
                _config(boundary=after, capacity="SPOT"),
                f"(permissions boundary: {before or 'nothing'} -> {after or 'nothing'})",
                "flag (permissions_boundary)",
            )
            for before, after in (("", BOUNDARY), (BOUNDARY, ANOTHER), (BOUNDARY, ""))
        ),
        (
            _config(),
            _config("/home", boundary=BOUNDARY),
            MOVED,
            "flags (home, fsx_id, efs_id, permissions_boundary)",
        ),
    ],
    ids=["mount", "boundary given", "another boundary", "boundary left out", "both"],
)
def test_mounts_and_permissions_boundary_stay(
    provider: Provider, *, before: dict[str, Any], after: dict[str, Any], change: str, flags: str, fleet: str
) -> None:
    provider.library.fleet = fleet
    said = _update(provider, before, after).fails()
    assert change in said
    assert f"Restore the former {flags}" in said
    assert "-c cluster_name=training-2" in said
    assert provider.library.changes == []


def test_an_update_that_keeps_both_goes_on(provider: Provider) -> None:
    _update(provider, _config(boundary=BOUNDARY), _config(boundary=BOUNDARY, capacity="SPOT")).poll()
    assert provider.library.changes == ["update"]
