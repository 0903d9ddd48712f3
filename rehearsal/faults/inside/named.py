"""Cases by name: faults between the provider, CloudFormation and the cluster; runs in .venv-pcluster.

Each case starts with a stack in the state that its request needs, and leaves it as CloudFormation does. The
driver then runs the next deploy or destroy.
"""

from collections.abc import Callable

import boto3
import failed_stacks
import interrupted
import overlapping
import removed
import unusual
from injection import Fault, KilledError
from scene import Scene, booting, create, delete, update


def _head_node(behaviour: str) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        with booting(behaviour):
            scene.stack.deploy(scene.wanted if scene.stack.stack_status() != "NONE" else scene.config)

    return act


def _ignoring(scene: Scene) -> None:
    """Deploy while the head node runs and signals, but ignores requests to the fleet."""
    with booting("ignores requests"):
        scene.stack.ignores_requests = True
        scene.stack.deploy(scene.wanted)
    scene.stack.ignores_requests = False
    scene.stack.come_to_rest()


def _dies(request: str, at: int) -> Callable[[Scene], None]:
    """Return an act in which the function dies after the work of its nth poll."""

    def die() -> None:
        raise KilledError

    def act(scene: Scene) -> None:
        with scene.stack.framework.after_poll(at, die):
            scene.do(request)

    return act


def _deleted_with_jobs(scene: Scene) -> None:
    node = _run_compute_node(scene)
    scene.stack.destroy()
    state = _state(node)
    if state != "terminated":
        raise AssertionError(f"the compute node {node} of a deleted cluster is {state}")


def _busy(scene: Scene) -> None:
    """Deploy while compute nodes run, without permission to stop them."""
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
    """Roll back a successful update after jobs have started: the jobs continue."""
    scene.stack.deploy(scene.wanted)
    node = _run_compute_node(scene)
    scene.stack.roll_back()
    if _state(node) != "running":
        raise AssertionError(f"a rollback left the busy node {_state(node)}")
    boto3.client("ec2").terminate_instances(InstanceIds=[node])


def _unanswered(call: str, kind: str) -> Callable[[Scene], None]:
    """Return an act in which no call of this name is answered for a whole poll."""

    def act(scene: Scene) -> None:
        scene.wire.arm(Fault(kind=kind, call=call, occurrence=2, times=8))
        scene.stack.deploy(scene.wanted)

    return act


def _volumes_want_tags(scene: Scene) -> None:
    """Deploy under a policy of the organisation that denies dry-run launches without volume tags."""
    scene.wire.arm(Fault(kind="untagged volume", call="ec2.RunInstances", occurrence=1, times=99))
    scene.stack.deploy(scene.wanted if scene.stack.stack_status() != "NONE" else scene.config)
    scene.check(scene.wire.fired and not scene.stack.reasons)


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


CASES = (
    {
        "the head node signals FAILURE": create(_head_node("fails")),
        "the head node never signals": create(_head_node("never signals")),
        "the head node signals FAILURE in an update": update(_head_node("fails")),
        "the head node never signals in an update": update(_head_node("never signals")),
        "the head node ignores the fleet's requests": update(_ignoring),
        "the Lambda dies in the first poll of a create": create(_dies("Create", 1)),
        "the Lambda dies in a later poll of a create": create(_dies("Create", 2)),
        "the Lambda dies while the fleet stops": update(_dies("Update", 1)),
        "the Lambda dies while the cluster is updated": update(_dies("Update", 2)),
        "the Lambda dies while the fleet starts": update(_dies("Update", 3)),
        "the Lambda dies in a delete": delete(_dies("Delete", 1)),
        "rollback when jobs run already": update(_busy_after_the_update),
        "delete while jobs run": delete(_deleted_with_jobs),
        "update while jobs run": update(_busy),
        "update that may stop jobs": update(_busy_and_stopped),
        "a policy wants tags on volumes in a create": create(_volumes_want_tags),
        "a policy wants tags on volumes in an update": update(_volumes_want_tags),
        "expired credentials": update(_unanswered("cloudformation.DescribeStacks", "expired")),
        "throttled for minutes": update(_unanswered("cloudformation.DescribeStacks", "throttled")),
        "no connection for minutes": update(_unanswered("dynamodb.GetItem", "dropped")),
    }
    | failed_stacks.CASES
    | interrupted.CASES
    | removed.CASES
    | overlapping.CASES
    | unusual.CASES
)
