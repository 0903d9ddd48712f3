"""Cases of overlapping and repeated requests, and of two stacks for one cluster; runs in .venv-pcluster."""

from collections.abc import Callable

from cloudformation import Stack
from scene import Named, Scene, create, delete, update


def _twice(request: str) -> Callable[[Scene], None]:
    """Return an act in which CloudFormation sends the event twice, and both are polled to the end."""

    def act(scene: Scene) -> None:
        with scene.stack.framework.repeating():
            scene.do(request)

    return act


def _rolled_back_afterwards(scene: Scene) -> None:
    """Roll back a successful update, as after a failure of another resource of the stack."""
    scene.stack.deploy(scene.wanted)
    scene.stack.roll_back()


def _rolled_back_meanwhile(scene: Scene) -> None:
    """Roll back while the cluster is being updated, with its fleet stopped."""
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


def _somebody_elses(scene: Scene) -> None:
    """Deploy a cluster whose name another stack's cluster already has."""
    other = Stack(scene.stack.cluster_name, scene.wire.watched, name="somebody-elses")
    other.deploy(scene.config)
    before = scene.stack.stack_status()
    scene.stack.deploy(scene.config)
    refused = "not made by this stack" in " ".join(scene.stack.reasons)
    if not refused or scene.stack.stack_status() != before:
        raise AssertionError(f"{scene.stack.stack_status()}: {scene.stack.reasons}")
    other.destroy()


def _somebody_elses_deleted(scene: Scene) -> None:
    """Delete a stack whose cluster belongs to another stack."""
    ours = scene.stack
    other = Stack(ours.cluster_name, scene.wire.watched, name="somebody-elses")
    other.begin_create(scene.config, polls=0, refused=True)
    other.destroy()
    if ours.stack_status() not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        raise AssertionError(f"the Delete of another stack left ours {ours.stack_status()}")
    ours.destroy()


def _second_stack(scene: Scene) -> None:
    """Deploy under another stack name while the first stack is still creating the cluster."""
    ours = scene.stack
    ours.begin_create(scene.config, polls=1)
    renamed = Stack(ours.cluster_name, scene.wire.watched, name=f"{ours.cluster_name}-renamed")
    renamed.deploy(scene.config)
    ours.finish_create()
    refused = "not made by this stack" in " ".join(renamed.reasons)
    if not refused or ours.status != "CREATE_COMPLETE":
        raise AssertionError(f"{ours.status}: {ours.reasons}; renamed: {renamed.reasons}")


def _replayed_create(scene: Scene) -> None:
    scene.stack.deploy(scene.config)
    scene.stack.deploy(scene.wanted)
    scene.stack.replay(-2)


def _replayed_update(scene: Scene) -> None:
    scene.stack.deploy(scene.wanted)
    scene.stack.deploy(scene.config)
    scene.stack.replay(-2)


CASES = {
    "the same Create twice": create(_twice("Create")),
    "the same Update twice": update(_twice("Update")),
    "the same Delete twice": delete(_twice("Delete")),
    "rollback after an update": update(_rolled_back_afterwards),
    "rollback in the middle of an update": update(_rolled_back_meanwhile),
    "delete before the cluster's stack began": create(_deleted_meanwhile(0)),
    "delete during create": create(_deleted_meanwhile(1)),
    "delete during update": delete(_deleted_meanwhile(2)),
    "another person has a cluster of that name": create(_somebody_elses),
    "the Delete of another stack": delete(_somebody_elses_deleted),
    "two stacks of one cluster name": create(_second_stack),
    "a Create delivered again after an update": Named(request="Create", act=_replayed_create, changes=True),
    "an Update delivered again after the next": Named(request="Update", act=_replayed_update),
}
