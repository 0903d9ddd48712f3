"""The contract with ministack and moto: every hook fits its description."""

import pytest

from rehearsal.local_aws.cloudformation.engine import path_style
from rehearsal.local_aws.emulators import hooks, ministack_hooks


def test_no_hook_has_moved() -> None:
    assert len(hooks.HOOKS) > 10
    assert hooks.moved() == []


def test_a_hook_that_is_gone_is_named_with_what_we_need_it_for() -> None:
    gone = hooks.Hook(target="ministack.app:no_such_thing", parameters=(), why="this test")
    with pytest.raises(hooks.HookMovedError, match=r"ministack\.app:no_such_thing is gone.*this test"):
        hooks.find(gone)


def test_a_hook_with_other_parameters_is_named() -> None:
    target = ministack_hooks.LAMBDA_BINARY.target
    changed = hooks.Hook(target=target, parameters=("runtime", "more"), why="this test")
    with pytest.raises(hooks.HookMovedError, match="takes"):
        hooks.find(changed)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://b.s3.us-east-1.amazonaws.com/a/t.yaml?x=1", "https://localhost/b/a/t.yaml?x=1"),
        ("https://b.s3.amazonaws.com/t.yaml", "https://localhost/b/t.yaml"),
        ("https://localhost:1/b/t.yaml", "https://localhost:1/b/t.yaml"),
    ],
)
def test_template_addresses_are_read_in_both_styles(url: str, expected: str) -> None:
    assert path_style(url) == expected
