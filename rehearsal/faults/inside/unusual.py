"""Cases of unusual values: records, refusals, configs, properties and clocks; runs in .venv-pcluster."""

import copy
import datetime
import json
from collections.abc import Callable

import boto3
from injection import Fault
from scene import Config, Scene, create, delete, says, update

_GARBAGE = ('{"request_id": "cut', "[]", '{"request": "Update"}')
_OFF = datetime.timedelta(minutes=10)
_LARGE_BYTES = 60_000


def _damage_record(scene: Scene, value: str) -> None:
    boto3.client("ssm").put_parameter(Name=scene.stack.parameter, Value=value, Type="String", Overwrite=True)


def _damaged_before(scene: Scene) -> None:
    """Update and update back, with invalid data in the record before each."""
    for value, config in zip(_GARBAGE, (scene.wanted, scene.config, scene.wanted), strict=True):
        _damage_record(scene, value)
        scene.stack.deploy(config)
        if scene.stack.status != "UPDATE_COMPLETE":
            raise AssertionError(f"{value}: {scene.stack.status}: {scene.stack.reasons}")


def _damaged_meanwhile(scene: Scene) -> None:
    """Damage the record while the fleet is stopped for an update."""
    with scene.stack.framework.after_poll(1, lambda: _damage_record(scene, _GARBAGE[0])):
        scene.stack.deploy(scene.wanted)
    scene.check(scene.stack.status == "UPDATE_COMPLETE")


def _damaged_and_deleted(scene: Scene) -> None:
    _damage_record(scene, _GARBAGE[0])
    scene.stack.destroy()


def _refused(kind: str, words: str) -> Callable[[Scene], None]:
    """Return an act in which AWS refuses to stop the fleet, and the reason has these words."""

    def act(scene: Scene) -> None:
        scene.wire.arm(Fault(kind=kind, call="dynamodb.UpdateItem", occurrence=1, times=9))
        scene.stack.deploy(scene.wanted)
        says(scene, words)

    return act


def _clock_off(difference: datetime.timedelta, request: str) -> Callable[[Scene], None]:
    """Return an act in which the polls' clock differs from on_event's."""

    def act(scene: Scene) -> None:
        scene.stack.framework.clock_is_off = difference
        try:
            scene.do(request)
        finally:
            scene.stack.framework.clock_is_off = datetime.timedelta()
        scene.check(not scene.stack.reasons)

    return act


def _large_config(scene: Scene) -> None:
    """Create a cluster from a config of 60 KB, and delete it."""
    scene.stack.deploy(_enlarged(scene.config))
    scene.check(scene.stack.status == "CREATE_COMPLETE")
    scene.stack.destroy()


def _enlarged(config: Config) -> Config:
    large = copy.deepcopy(config)
    for action in large["HeadNode"]["CustomActions"].values():
        scripts = action.get("Sequence", [action])
        scripts[-1]["Args"] = [*scripts[-1].get("Args", []), "x" * _LARGE_BYTES]
        return large
    raise AssertionError("the head node has no custom action")


def _without_on_busy(scene: Scene) -> None:
    """Update a stack whose previous properties have no OnBusy, and roll the update back."""
    scene.stack.deploy(scene.wanted, OnBusy="fail")
    scene.stack.roll_back()
    scene.check(scene.stack.status == "UPDATE_ROLLBACK_COMPLETE")


def _name_taken(scene: Scene) -> None:
    """Deploy while a stack of another app has the cluster's name, and remove that stack."""
    cloudformation, name = boto3.client("cloudformation"), scene.stack.cluster_name
    template = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    cloudformation.create_stack(StackName=name, TemplateBody=template)
    scene.stack.come_to_rest()
    scene.stack.deploy(scene.config)
    try:
        says(scene, f"A stack or cluster named {name} exists already", "-c cluster_name=")
    finally:
        cloudformation.delete_stack(StackName=name)
        scene.stack.come_to_rest()


CASES = {
    "the record is garbage": update(_damaged_before),
    "the record becomes garbage while the fleet is stopped": update(_damaged_meanwhile),
    "the record is garbage, then the cluster is deleted": delete(_damaged_and_deleted),
    "a refusal of 9 KB": update(_refused("denied at length", "The organisation's policy")),
    # Lambda cannot log such a message, so only the failed operation is named.
    "a refusal of 9 KB with lone surrogates": update(
        _refused("denied unprintably", "stopping compute fleet")
    ),
    "a clock that is 10 minutes ahead in a create": create(_clock_off(_OFF, "Create")),
    "a clock that is 10 minutes ahead in an update": update(_clock_off(_OFF, "Update")),
    "a clock that is 10 minutes behind in an update": update(_clock_off(-_OFF, "Update")),
    "a clock that is 10 minutes behind in a delete": delete(_clock_off(-_OFF, "Delete")),
    "another app's stack has the cluster's name": create(_name_taken),
    "a config of 60 KB": create(_large_config),
    "former properties without OnBusy": update(_without_on_busy),
}
