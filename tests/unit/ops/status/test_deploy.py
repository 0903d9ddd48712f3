"""`trainctl status`: what a person sees while CloudFormation shows one line."""

import datetime
import json
from typing import Any

import pytest

from ops.account.head_node import find_head_node
from ops.account.stacks import deployed_name
from ops.status.deploy import Progress, Stage, Status, read_status, render
from tests.unit.assets.cluster_image.image_fakes import VERSION
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import stack
from training_cluster.stack_names import DEFAULT_CLUSTER, FORMER_DEFAULT

NOW = datetime.datetime(2026, 11, 21, 12, 10, tzinfo=datetime.UTC)
OWN = "/training-cluster/stacks/TrainingClusterStack{}/progress"


def _read(stacks: dict[str, str], suffix: str = "", *, notes: dict[str, Any] | None = None) -> Status:
    """Read the status of a cluster with this suffix, whose provider wrote these notes."""

    def parameter(asked: dict[str, Any]) -> Any:
        assert asked["Name"] == OWN.format(suffix)
        return {"Parameter": {"Value": json.dumps(notes)}} if notes else Refused("ParameterNotFound")

    listed = [stack(name, status=status) for name, status in stacks.items()]
    account = Account({"DescribeStacks": {"Stacks": listed}, "GetParameter": parameter})
    return read_status(suffix.removeprefix("-") or DEFAULT_CLUSTER, account.client)


def _progress(*stages: tuple[str, int], request: str = "Create", messages: str = "") -> Progress:
    return Progress(
        request=request,
        stages=tuple(Stage(name=name, began=NOW.replace(minute=minute)) for name, minute in stages),
        messages=tuple(messages.splitlines()),
    )


def _lines(status: Status) -> str:
    return "\n".join(render(status, NOW))


def test_stacks_are_shown_with_the_clusters() -> None:
    stacks = {"TrainingCluster-Network": "CREATE_COMPLETE", "TrainingClusterStack": "CREATE_IN_PROGRESS"}
    status = _read(stacks | {DEFAULT_CLUSTER: "CREATE_IN_PROGRESS"})
    assert status.is_moving
    assert status.progress is None
    assert "TrainingCluster-Storage" not in _lines(status)
    assert f"{DEFAULT_CLUSTER:23}  CREATE_IN_PROGRESS  ParallelCluster's own stack" in _lines(status)
    status = _read(
        {"TrainingClusterStack-b": "UPDATE_COMPLETE", "TrainingClusterStack": "CREATE_COMPLETE"}, "-b"
    )
    assert status.stacks == (("TrainingClusterStack-b", "UPDATE_COMPLETE"),)
    assert not status.is_moving
    ours = [
        "TrainingCluster-Network",
        f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}",
        f"TrainingCluster-Image-volta-ubuntu2404-{VERSION}",
    ]
    status = _read(dict.fromkeys([*reversed(ours), "TrainingCluster-Image-of-others"], "CREATE_COMPLETE"))
    assert [name for name, _ in status.stacks] == ours


def test_the_former_default_is_found() -> None:
    own = stack("TrainingClusterStack", HeadNodeInstanceId="i-0123456789abcdef0")
    own["Description"] = f"Training Cluster: the cluster {FORMER_DEFAULT}, family p5"
    client = Account(
        {"DescribeStacks": {"Stacks": [own]}, "GetParameter": Refused("ParameterNotFound")}
    ).client
    found = read_status(DEFAULT_CLUSTER, client)
    assert (found.cluster_name, found.has_cluster, found.other_clusters) == (FORMER_DEFAULT, True, ())
    assert find_head_node(DEFAULT_CLUSTER, client).cluster_name == FORMER_DEFAULT
    assert deployed_name(DEFAULT_CLUSTER, client) == FORMER_DEFAULT
    assert deployed_name("b", client) == "b"
    own["StackStatus"] = "ROLLBACK_COMPLETE"
    assert deployed_name(DEFAULT_CLUSTER, client) == FORMER_DEFAULT
    assert deployed_name(DEFAULT_CLUSTER, client, or_failed=False) == DEFAULT_CLUSTER


def test_slow_stacks_show_their_usual_time() -> None:
    image = f"gpu-ubuntu2404-{VERSION}"
    build = f"a build takes about 90 minutes: aws logs tail --follow /aws/imagebuilder/training-{image}"
    lustre = "usually about 10 min for Lustre"
    for state in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "CREATE_COMPLETE"):
        shown = _lines(_read({f"TrainingCluster-Image-{image}": state}))
        assert (build in shown) == (state in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")), state
        shown = _lines(_read({"TrainingCluster-Storage": state}))
        assert (lustre in shown) == (state == "CREATE_IN_PROGRESS"), state


@pytest.mark.parametrize("state", ["CREATE_FAILED", "ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"])
def test_a_failed_build_names_its_logs(state: str) -> None:
    shown = _lines(_read({f"TrainingCluster-Image-volta-alinux2023-{VERSION}": state}))
    assert f"logs/images/training-volta-alinux2023-{VERSION}/" in shown
    removes = "npx cdk destroy ImageStack --exclusively -c image=build -c family=p3dn -c os=alinux2023"
    assert (removes in shown) == (state == "CREATE_FAILED")
    assert "TrainingClusterStack" not in shown, "the cluster is as it was"


def test_the_providers_notes_are_read_as_written() -> None:
    written = {
        "request": "Update",
        "stages": [["validating", "2026-11-21T12:00:00+00:00"]],
        "messages": "a\nb",
        "begun": False,
    }
    progress = _read({}, notes=written).progress
    assert progress == _progress(("validating", 0), request="Update", messages="a\nb")


def test_each_stage_has_its_beginning_and_time() -> None:
    booting = [("validating", 0), ("head node booting", 1)]
    for stages, shown in (
        (booting, ["for 10 min 0 s", " 1 min 0 s", " ... 9 min 0 s  usually about 10 to 20 min"]),
        ([*booting, ("done", 9)], ["took 9 min 0 s", " 1 min 0 s", " 8 min 0 s", "12:09:00Z  done"]),
        ([("validating", 0), ("failed", 4)], ["took 4 min 0 s", " 4 min 0 s", "12:04:00Z  failed"]),
    ):
        stacks = (("TrainingClusterStack", "CREATE_IN_PROGRESS"),)
        status = Status(cluster_name="training", stacks=stacks, progress=_progress(*stages))
        lines = _lines(status).splitlines()[-len(shown) :]
        assert [words for words, line in zip(shown, lines, strict=True) if words not in line] == []


def test_a_missing_cluster_names_what_there_is() -> None:
    shown = _lines(_read({"TrainingCluster-Network": "CREATE_COMPLETE"}, "-second"))
    assert "The cluster second does not exist yet. A deploy in progress creates it last." in shown
    assert "trainctl deploy --cluster second" in shown
    stacks = {"TrainingCluster-Network": "CREATE_COMPLETE", "TrainingClusterStack-b": "CREATE_COMPLETE"}
    stacks["TrainingClusterStack"] = "CREATE_COMPLETE"
    shown = _lines(_read(stacks, "-nosuch"))
    assert f"There is no cluster nosuch here. Clusters here: b, {DEFAULT_CLUSTER}." in shown


def test_a_stuck_stack_names_the_mending_command() -> None:
    for name, state, command in (
        ("TrainingCluster-Storage", "ROLLBACK_COMPLETE", "--no-enable-termination-protection --stack-name"),
        ("TrainingCluster-Accounting", "ROLLBACK_FAILED", "trainctl destroy --plan --cluster training"),
        ("TrainingCluster-Accounting", "CREATE_FAILED", "trainctl destroy --plan --cluster training"),
        ("training", "UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name training"),
        ("TrainingClusterStack", "CREATE_FAILED", "npx cdk destroy TrainingClusterStack"),
        ("TrainingCluster-Network", "CREATE_FAILED", "npx cdk destroy NetworkStack"),
        ("TrainingCluster-Storage", "CREATE_FAILED", "Cluster-Storage\n  npx cdk destroy StorageStack"),
    ):
        status = Status(cluster_name="training", stacks=((name, state),), progress=None)
        assert command in _lines(status)
        healthy = Status(cluster_name="training", stacks=((name, "CREATE_COMPLETE"),), progress=None)
        assert command not in _lines(healthy)
