"""The contract with ministack and moto: every hook fits its description."""

import pytest

from rehearsal.local_aws.emulators import hooks


@pytest.mark.parametrize("name", hooks.HOOKS)
def test_no_hook_has_moved(name: str) -> None:
    for hook in hooks.HOOKS[name]:
        hooks.check(hook)


def test_moved_hook_is_named() -> None:
    for declared, message in (
        ("ministack.app:no_such_thing", r"ministack\.app:no_such_thing is gone"),
        (f"{hooks.HOOKS['LAMBDA_BINARY'][0].target}(runtime, more)", "takes"),
    ):
        with pytest.raises(hooks.HookMovedError, match=message):
            hooks.check(hooks.Hook(declared))
