"""The contract with ministack and moto: every hook fits its description."""

import pytest

from rehearsal.local_aws.emulators import hooks, ministack_hooks


def test_no_hook_has_moved() -> None:
    assert len(hooks.HOOKS) > 10
    assert hooks.moved() == []


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("ministack.app:no_such_thing", r"ministack\.app:no_such_thing is gone.*this test"),
        (ministack_hooks.LAMBDA_BINARY.target, "takes"),
    ],
)
def test_moved_hook_is_named(target: str, message: str) -> None:
    with pytest.raises(hooks.HookMovedError, match=message):
        hooks.find(hooks.Hook(target=target, parameters=("runtime", "more"), why="this test"))
