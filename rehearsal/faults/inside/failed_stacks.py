"""Cases in which CloudFormation cannot finish a change of the cluster's stack; runs in .venv-pcluster."""

import boto3
from injection import Fault
from scene import Scene, booting, create, delete, says, update


def _update_rollback_failed(scene: Scene) -> None:
    """Let the provider see UPDATE_ROLLBACK_FAILED, in which AWS refuses updates, until a person fixes it."""
    name, status = scene.stack.cluster_name, "UPDATE_ROLLBACK_FAILED"
    shown = scene.wire.showing(name, status)

    def fail() -> None:
        shown.__enter__()
        scene.wire.arm(Fault(kind="not updatable", call="cloudformation.UpdateStack", occurrence=1, times=9))

    with scene.stack.framework.after_poll(2, fail):
        scene.stack.deploy(scene.wanted)
    shown.__exit__(None, None, None)
    says(scene, f"aws cloudformation continue-update-rollback --stack-name {name}")


def _protect(scene: Scene, *, protected: bool) -> None:
    """Protect the cluster's table against deletion, or end this."""
    table = f"parallelcluster-{scene.stack.cluster_name}"
    boto3.client("dynamodb").update_table(TableName=table, DeletionProtectionEnabled=protected)


def _delete_failed(scene: Scene) -> None:
    """Let the deletion of the cluster's stack fail, and fix it before the next destroy."""
    _protect(scene, protected=True)
    scene.stack.destroy()
    _protect(scene, protected=False)
    scene.check(scene.stack.status == "DELETE_FAILED")
    says(scene, "protected against deletion")


def _rollback_failed(scene: Scene) -> None:
    """Let the head node fail, and the deletion of its cluster too, and fix it before the next deploy."""

    def protect() -> None:
        scene.stack.come_to_rest()
        _protect(scene, protected=True)

    with booting("fails"), scene.stack.framework.after_poll(1, protect):
        scene.stack.deploy(scene.config)
    _protect(scene, protected=False)
    scene.check(scene.stack.status == "ROLLBACK_FAILED")


CASES = {
    "the cluster's stack is UPDATE_ROLLBACK_FAILED": update(_update_rollback_failed),
    "the cluster's stack is DELETE_FAILED": delete(_delete_failed),
    "the rollback of a create fails": create(_rollback_failed),
}
