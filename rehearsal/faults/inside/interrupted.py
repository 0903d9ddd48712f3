"""Cases in which the function ends right after a call, or AWS answers no call; runs in .venv-pcluster."""

from collections.abc import Callable

from injection import ANY, Fault
from scene import Scene, create, delete, update

# More calls than any request makes.
_ALWAYS = 100_000
_A_WHILE = 60


def _killed_after(call: str, request: str) -> Callable[[Scene], None]:
    """Return an act in which AWS executes the call, but the function dies before the answer arrives."""

    def act(scene: Scene) -> None:
        scene.wire.arm(Fault(kind="killed", call=call, occurrence=1))
        scene.do(request)
        if not scene.wire.fired:
            raise AssertionError(f"{request} made no call of {call}")

    return act


def _unanswered(kind: str, request: str, *, times: int, poll: int = 0) -> Callable[[Scene], None]:
    """Return an act in which no call is answered, from the beginning or after the nth poll."""
    fault = Fault(kind=kind, call=ANY, occurrence=1, times=times)

    def act(scene: Scene) -> None:
        if not poll:
            scene.wire.arm(fault)
        with scene.stack.framework.after_poll(poll, lambda: scene.wire.arm(fault)):
            scene.do(request)
        if not scene.wire.fired:
            raise AssertionError(f"{request} made no call")

    return act


CASES = {
    "the Lambda is killed right after CreateStack": create(
        _killed_after("cloudformation.CreateStack", "Create")
    ),
    "the Lambda is killed right after the request to stop the fleet": update(
        _killed_after("dynamodb.UpdateItem", "Update")
    ),
    "the Lambda is killed right after UpdateStack": update(
        _killed_after("cloudformation.UpdateStack", "Update")
    ),
    "the Lambda is killed right after DeleteStack": delete(
        _killed_after("cloudformation.DeleteStack", "Delete")
    ),
    "all calls are throttled when a create begins": create(
        _unanswered("throttled", "Create", times=_A_WHILE)
    ),
    "all calls are throttled while the cluster is created": create(
        _unanswered("throttled", "Create", times=_A_WHILE, poll=1)
    ),
    "all calls end in 500 in a delete": delete(_unanswered("error-500", "Delete", times=_ALWAYS)),
}
