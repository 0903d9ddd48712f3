"""Runs in .venv-pcluster: what goes wrong between the provider, CloudFormation and the cluster, by name.

Each takes a stack in the state that its request wants and leaves it as CloudFormation would; the driver then
tries the next deploy or destroy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from cloudformation import Stack
from injection import Fault, Wire

Config = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a named case acts on."""

    stack: Stack
    wire: Wire
    config: Config
    """As it is deployed, or is to be created."""
    wanted: Config
    """What the update is to bring: it wants a stopped fleet."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """One case."""

    request: str
    """Create, Update or Delete: decides what stands before, and what comes next."""
    act: Callable[[Scene], None]
    changes: bool = False
    """Whether `wanted` is what the next deploy asks for."""


def _head_node(behaviour: str) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        with _booting(behaviour):
            scene.stack.deploy(scene.wanted if scene.stack.stack_status() != "NONE" else scene.config)

    return act


@contextmanager
def _booting(behaviour: str) -> Iterator[None]:
    file = Path(os.environ["LOCAL_AWS_HEAD_NODE"])
    file.write_text(behaviour)
    try:
        yield
    finally:
        file.unlink()


def _deaf(scene: Scene) -> None:
    """The head node runs and signals, and does nothing that is asked of the fleet, until all is over."""
    with _booting("is deaf"):
        scene.stack.is_deaf = True
        scene.stack.deploy(scene.wanted)
    scene.stack.is_deaf = False
    scene.stack.come_to_rest()


def _dies(request: str, at: int) -> Callable[[Scene], None]:
    """The function ends without an answer after the nth poll did its work."""

    def act(scene: Scene) -> None:
        with scene.stack.dying(at):
            if request == "Delete":
                scene.stack.destroy()
            else:
                scene.stack.deploy(scene.wanted if request == "Update" else scene.config)

    return act


def _twice(request: str) -> Callable[[Scene], None]:
    """CloudFormation sends the event twice, and both are polled to the end."""

    def act(scene: Scene) -> None:
        with scene.stack.repeating():
            if request == "Delete":
                scene.stack.destroy()
            else:
                scene.stack.deploy(scene.wanted if request == "Update" else scene.config)

    return act


def _rolled_back_afterwards(scene: Scene) -> None:
    """The update went well, and another resource of the stack failed."""
    scene.stack.deploy(scene.wanted)
    scene.stack.roll_back()


def _rolled_back_meanwhile(scene: Scene) -> None:
    """CloudFormation gives up while the cluster is being updated, its fleet stopped."""
    scene.stack.begin_update(scene.wanted, polls=3)
    scene.stack.roll_back()


def _deleted_meanwhile(polls: int) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        if scene.stack.stack_status() == "NONE":
            scene.stack.begin_create(scene.config, polls=polls)
        else:
            scene.stack.begin_update(scene.wanted, polls=polls)
        scene.stack.destroy()

    return act


def _deleted_with_jobs(scene: Scene) -> None:
    node = _run_compute_node(scene)
    scene.stack.destroy()
    state = _state(node)
    if state != "terminated":
        raise AssertionError(f"the compute node {node} of a deleted cluster is {state}")


def _busy(scene: Scene) -> None:
    """Compute nodes run, and nobody said that they may be stopped."""
    node = _run_compute_node(scene)
    scene.stack.deploy(scene.wanted)
    if _state(node) != "running" or "on_busy=stop" not in " ".join(scene.stack.reasons):
        raise AssertionError(f"a busy node is {_state(node)}: {scene.stack.reasons}")
    boto3.client("ec2").terminate_instances(InstanceIds=[node])


def _busy_and_stopped(scene: Scene) -> None:
    node = _run_compute_node(scene)
    scene.stack.deploy(scene.wanted, OnBusy="stop")
    if _state(node) != "terminated":
        raise AssertionError(f"on_busy=stop left the node {_state(node)}")


def _busy_after_the_update(scene: Scene) -> None:
    """The update went well, jobs began, and then the stack rolls back: the jobs go on."""
    scene.stack.deploy(scene.wanted)
    node = _run_compute_node(scene)
    scene.stack.roll_back()
    if _state(node) != "running":
        raise AssertionError(f"a rollback left the busy node {_state(node)}")
    boto3.client("ec2").terminate_instances(InstanceIds=[node])


def _deleted_by_hand(scene: Scene) -> None:
    cloudformation = boto3.client("cloudformation")
    cloudformation.delete_stack(StackName=scene.stack.cluster_name)
    scene.stack.come_to_rest()
    scene.stack.deploy(scene.wanted)


def _somebody_elses(scene: Scene) -> None:
    """Another stack made a cluster of this name first."""
    other = Stack(scene.stack.cluster_name, scene.wire.watched)
    other.deploy(scene.config)
    before = scene.stack.stack_status()
    scene.stack.deploy(scene.config)
    refused = "not made by this stack" in " ".join(scene.stack.reasons)
    if not refused or scene.stack.stack_status() != before:
        raise AssertionError(f"{scene.stack.stack_status()}: {scene.stack.reasons}")
    other.destroy()


def _somebody_elses_deleted(scene: Scene) -> None:
    """The Delete of a stack whose cluster was taken over by another one."""
    ours = scene.stack
    other = Stack(ours.cluster_name, scene.wire.watched)
    other.begin_create(scene.config, polls=0, refused=True)
    other.destroy()
    if ours.stack_status() not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        raise AssertionError(f"the Delete of another stack left ours {ours.stack_status()}")
    ours.destroy()


def _unanswered(call: str, kind: str) -> Callable[[Scene], None]:
    """No call of this name is answered for a whole poll."""

    def act(scene: Scene) -> None:
        scene.wire.arm(Fault(kind=kind, call=call, occurrence=2, times=8))
        scene.stack.deploy(scene.wanted)

    return act


def _run_compute_node(scene: Scene) -> str:
    ec2 = boto3.client("ec2")
    tags = {
        "parallelcluster:cluster-name": scene.stack.cluster_name,
        "parallelcluster:node-type": "Compute",
        "parallelcluster:queue-name": scene.config["Scheduling"]["SlurmQueues"][0]["Name"],
    }
    subnet = scene.config["HeadNode"]["Networking"]["SubnetId"]
    specification = {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
    answer = ec2.run_instances(
        ImageId=ec2.describe_images()["Images"][0]["ImageId"],
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet, "DeleteOnTermination": True}],
        TagSpecifications=[specification],
    )
    return str(answer["Instances"][0]["InstanceId"])


def _state(instance_id: str) -> str:
    answer = boto3.client("ec2").describe_instances(InstanceIds=[instance_id])
    return str(answer["Reservations"][0]["Instances"][0]["State"]["Name"])


CASES = {
    "the head node signals FAILURE": Named(request="Create", act=_head_node("fails")),
    "the head node never signals": Named(request="Create", act=_head_node("is silent")),
    "the head node signals FAILURE in an update": Named(
        request="Update", act=_head_node("fails"), changes=True
    ),
    "the head node never signals in an update": Named(
        request="Update", act=_head_node("is silent"), changes=True
    ),
    "the head node is deaf to the fleet's requests": Named(request="Update", act=_deaf, changes=True),
    "the Lambda dies in the first poll of a create": Named(request="Create", act=_dies("Create", 1)),
    "the Lambda dies in a later poll of a create": Named(request="Create", act=_dies("Create", 2)),
    "the Lambda dies while the fleet stops": Named(request="Update", act=_dies("Update", 1), changes=True),
    "the Lambda dies while the cluster is updated": Named(
        request="Update", act=_dies("Update", 2), changes=True
    ),
    "the Lambda dies while the fleet starts": Named(request="Update", act=_dies("Update", 3), changes=True),
    "the Lambda dies in a delete": Named(request="Delete", act=_dies("Delete", 1)),
    "the same Create twice": Named(request="Create", act=_twice("Create")),
    "the same Update twice": Named(request="Update", act=_twice("Update"), changes=True),
    "the same Delete twice": Named(request="Delete", act=_twice("Delete")),
    "rollback after an update": Named(request="Update", act=_rolled_back_afterwards, changes=True),
    "rollback in the middle of an update": Named(request="Update", act=_rolled_back_meanwhile, changes=True),
    "rollback when jobs run already": Named(request="Update", act=_busy_after_the_update, changes=True),
    "delete before the cluster's stack began": Named(request="Create", act=_deleted_meanwhile(0)),
    "delete during create": Named(request="Create", act=_deleted_meanwhile(1)),
    "delete during update": Named(request="Delete", act=_deleted_meanwhile(2)),
    "delete while jobs run": Named(request="Delete", act=_deleted_with_jobs),
    "update while jobs run": Named(request="Update", act=_busy, changes=True),
    "update that may stop jobs": Named(request="Update", act=_busy_and_stopped, changes=True),
    "the cluster was deleted by hand": Named(request="Update", act=_deleted_by_hand, changes=True),
    "somebody else's cluster of that name": Named(request="Create", act=_somebody_elses),
    "the Delete of another stack": Named(request="Delete", act=_somebody_elses_deleted),
    "expired credentials": Named(
        request="Update", act=_unanswered("cloudformation.DescribeStacks", "expired"), changes=True
    ),
    "throttled for minutes": Named(
        request="Update", act=_unanswered("cloudformation.DescribeStacks", "throttled"), changes=True
    ),
    "no connection for minutes": Named(
        request="Update", act=_unanswered("dynamodb.GetItem", "dropped"), changes=True
    ),
}
