"""`trainctl status`: what a person sees while CloudFormation shows one line."""

import datetime
import json
from types import SimpleNamespace
from typing import Any

import pytest

from ops.status.deploy import Progress, Stage, Status, read_status, render
from tests.unit.assets.cluster_image.image_fakes import VERSION

NOW = datetime.datetime(2026, 11, 21, 12, 10, tzinfo=datetime.UTC)


class _Errors:
    class ClientError(Exception):
        pass

    class ParameterNotFound(Exception):  # noqa: N818
        pass


class Aws:
    """Stacks by name, and the value of the parameter."""

    exceptions = _Errors

    def __init__(self, stacks: dict[str, str], value: str | None = None) -> None:
        self.stacks, self.value, self.asked = stacks, value, list[str]()

    def get_paginator(self, operation_name: str, /) -> Any:
        assert operation_name == "describe_stacks"
        return SimpleNamespace(paginate=self.describe_stacks_by_page)

    def describe_stacks_by_page(self) -> Any:
        """One stack a page."""
        for name, status in self.stacks.items():
            yield {"Stacks": [{"StackName": name, "StackStatus": status}]}

    def get_template(self, *, StackName: str) -> Any:  # noqa: N803
        raise _Errors.ClientError(f"Stack with id {StackName} does not exist")

    def get_parameter(self, *, Name: str) -> Any:  # noqa: N803
        self.asked.append(Name)
        if self.value is None:
            raise _Errors.ParameterNotFound
        return {"Parameter": {"Value": self.value}}


def _read(aws: Aws, cluster_name: str = "training") -> Status:
    return read_status(cluster_name, cloudformation=aws, ssm=aws)


def _progress(*stages: tuple[str, int], request: str = "Create", messages: str = "") -> Progress:
    return Progress(
        request=request,
        stages=tuple(Stage(name=name, began=NOW.replace(minute=minute)) for name, minute in stages),
        messages=tuple(messages.splitlines()),
    )


def _lines(status: Status) -> str:
    return "\n".join(render(status, NOW))


def test_existing_stacks_are_shown_with_the_clusters() -> None:
    aws = Aws({"TrainingCluster-Network": "CREATE_COMPLETE", "TrainingClusterStack": "CREATE_IN_PROGRESS"})
    aws.stacks["training"] = "CREATE_IN_PROGRESS"
    status = _read(aws)
    assert status.is_moving
    assert "TrainingCluster-Storage" not in _lines(status)
    assert "training                 CREATE_IN_PROGRESS  ParallelCluster's own stack" in _lines(status)


def test_another_cluster_has_its_own_stack_and_parameter() -> None:
    aws = Aws({"TrainingClusterStack-b": "UPDATE_COMPLETE", "TrainingClusterStack": "CREATE_COMPLETE"})
    status = _read(aws, "b")
    assert status.stacks == (("TrainingClusterStack-b", "UPDATE_COMPLETE"),)
    assert aws.asked == ["/training-cluster/stacks/TrainingClusterStack-b/progress"]
    assert not status.is_moving


def test_only_image_stacks_are_shown_as_such() -> None:
    aws = Aws(
        {
            f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}": "CREATE_IN_PROGRESS",
            "TrainingCluster-Network": "CREATE_COMPLETE",
        }
    )
    aws.stacks |= {
        f"TrainingCluster-Image-volta-ubuntu2404-{VERSION}": "CREATE_COMPLETE",
        "TrainingCluster-Image-of-others": "CREATE_COMPLETE",
    }
    status = _read(aws)
    assert [name for name, _ in status.stacks] == [
        "TrainingCluster-Network",
        f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}",
        f"TrainingCluster-Image-volta-ubuntu2404-{VERSION}",
    ]
    assert status.is_moving


def test_an_image_build_shows_time_and_log() -> None:
    log = f"/aws/imagebuilder/training-gpu-ubuntu2404-{VERSION}"
    build = f"a build takes about 90 minutes: aws logs tail --follow {log}"
    for state in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "CREATE_COMPLETE"):
        shown = _lines(_read(Aws({f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}": state})))
        assert (build in shown) == (state in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")), state


@pytest.mark.parametrize("state", ["CREATE_FAILED", "ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"])
def test_a_failed_build_names_its_logs(state: str) -> None:
    shown = _lines(_read(Aws({f"TrainingCluster-Image-volta-alinux2023-{VERSION}": state})))
    assert f"logs/images/training-volta-alinux2023-{VERSION}/" in shown
    removes = "npx cdk destroy ImageStack --exclusively -c image=build -c family=p3dn -c os=alinux2023"
    assert (removes in shown) == (state == "CREATE_FAILED")
    assert "TrainingClusterStack" not in shown, "the cluster is as it was"


def test_an_aws_error_is_no_missing_stack() -> None:
    class Denied(Aws):
        def describe_stacks_by_page(self) -> Any:
            raise _Errors.ClientError("not authorized")

    with pytest.raises(_Errors.ClientError, match="not authorized"):
        _read(Denied({}))


def test_the_providers_notes_are_read_as_written() -> None:
    written = {
        "request": "Update",
        "stages": [["validating", "2026-11-21T12:00:00+00:00"]],
        "messages": "a\nb",
        "begun": False,
    }
    progress = _read(Aws({}, json.dumps(written))).progress
    assert progress == _progress(("validating", 0), request="Update", messages="a\nb")


def test_before_the_provider_nothing_is_shown() -> None:
    assert _read(Aws({})).progress is None


def test_a_request_without_stage_has_no_duration() -> None:
    stacks = (("TrainingClusterStack", "DELETE_IN_PROGRESS"),)
    progress = _progress(request="Delete")
    assert not progress.is_over
    shown = _lines(Status(cluster_name="training", stacks=stacks, progress=progress))
    assert "Delete of the cluster, for 0 s:" in shown


def test_each_stage_has_its_beginning_and_its_time() -> None:
    stacks = (("TrainingClusterStack", "CREATE_IN_PROGRESS"),)
    stages = _progress(("validating", 0), ("head node booting", 1))
    shown = _lines(Status(cluster_name="training", stacks=stacks, progress=stages))
    assert "Create of the cluster, for 10 min 0 s:" in shown
    assert "12:00:00Z  validating" in shown
    assert "1 min 0 s" in shown
    assert "... 9 min 0 s" in shown


def test_a_running_stage_shows_its_usual_time() -> None:
    stacks = (("TrainingClusterStack", "CREATE_IN_PROGRESS"),)
    stages = _progress(("validating", 0), ("head node booting", 1))
    shown = _lines(Status(cluster_name="training", stacks=stacks, progress=stages)).splitlines()
    assert shown[-1].endswith("... 9 min 0 s  usually about 10 to 20 min")
    assert "usually" not in shown[-2], "it is over"
    ended = _progress(("validating", 0), ("head node booting", 1), ("done", 9))
    assert "usually" not in _lines(Status(cluster_name="training", stacks=stacks, progress=ended))


def test_lustre_takes_its_time() -> None:
    for state in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "CREATE_COMPLETE"):
        shown = _lines(_read(Aws({"TrainingCluster-Storage": state})))
        assert ("usually about 10 min for Lustre" in shown) == (state == "CREATE_IN_PROGRESS")


@pytest.mark.parametrize("end", ["done", "failed"])
def test_ended_work_shows_its_duration(end: str) -> None:
    stacks = (("TrainingClusterStack", "CREATE_COMPLETE"),)
    shown = _lines(
        Status(cluster_name="training", stacks=stacks, progress=_progress(("validating", 0), (end, 4)))
    )
    assert "took 4 min 0 s" in shown
    assert "..." not in shown


def test_between_two_stacks_the_next_is_named() -> None:
    shown = _lines(_read(Aws({"TrainingCluster-Network": "CREATE_COMPLETE"}), "second"))
    assert "The cluster second does not exist yet. A deploy in progress creates it last." in shown
    assert "npx cdk deploy TrainingClusterStack -c cluster_name=second" in shown


def test_a_missing_cluster_names_the_existing_ones() -> None:
    stacks = {"TrainingCluster-Network": "CREATE_COMPLETE", "TrainingClusterStack-b": "CREATE_COMPLETE"}
    stacks["TrainingClusterStack"] = "CREATE_COMPLETE"
    assert "There is no cluster nosuch here. Clusters here: b, training." in _lines(
        _read(Aws(stacks), "nosuch")
    )


def test_without_a_stack_it_says_what_to_type() -> None:
    shown = _lines(Status(cluster_name="training", stacks=(), progress=None))
    assert "npx cdk deploy TrainingClusterStack" in shown


@pytest.mark.parametrize(
    ("stack", "state", "command"),
    [
        (
            "TrainingCluster-Storage",
            "ROLLBACK_COMPLETE",
            "--no-enable-termination-protection --stack-name TrainingCluster-Storage",
        ),
        (
            "TrainingCluster-Accounting",
            "ROLLBACK_COMPLETE",
            "--no-enable-termination-protection --stack-name TrainingCluster-Accounting",
        ),
        ("training", "UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name training"),
        ("TrainingClusterStack", "CREATE_FAILED", "npx cdk destroy TrainingClusterStack"),
        ("TrainingCluster-Network", "CREATE_FAILED", "npx cdk destroy NetworkStack"),
        (
            "TrainingCluster-Storage",
            "CREATE_FAILED",
            "--stack-name TrainingCluster-Storage\n  npx cdk destroy StorageStack",
        ),
    ],
)
def test_a_stuck_stack_names_the_mending_command(stack: str, state: str, command: str) -> None:
    status = Status(cluster_name="training", stacks=((stack, state),), progress=None)
    assert command in _lines(status)
    healthy = Status(cluster_name="training", stacks=((stack, "CREATE_COMPLETE"),), progress=None)
    assert command not in _lines(healthy)
