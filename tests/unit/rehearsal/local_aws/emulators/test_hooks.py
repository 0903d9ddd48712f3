"""The contract with ministack and moto: every hook fits its description."""

import pytest

from rehearsal.local_aws.emulators import hooks, ministack_hooks, moto_hooks

HOOKS = [
    hook
    for module in (ministack_hooks, moto_hooks)
    for value in vars(module).values()
    for hook in (value if isinstance(value, tuple) else (value,))
    if isinstance(hook, hooks.Hook)
]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.target)
def test_no_hook_has_moved(hook: hooks.Hook) -> None:
    hooks.find(hook)


def test_moved_hook_is_named() -> None:
    for declared, message in (
        ("ministack.app:no_such_thing", r"ministack\.app:no_such_thing is gone"),
        (f"{ministack_hooks.LAMBDA_BINARY.target}(runtime, more)", "takes"),
    ):
        with pytest.raises(hooks.HookMovedError, match=message):
            hooks.find(hooks.Hook(declared))
