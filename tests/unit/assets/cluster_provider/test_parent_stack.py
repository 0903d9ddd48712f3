"""Status of the parent stack, which tells a rollback and a clean-up."""

import pytest

from tests.unit.assets.cluster_provider.fakes.provider import Provider


@pytest.mark.parametrize(
    ("status", "rolls_back"),
    [
        ("UPDATE_IN_PROGRESS", False),
        ("UPDATE_ROLLBACK_IN_PROGRESS", True),
        ("UPDATE_ROLLBACK_FAILED", True),
        ("ROLLBACK_IN_PROGRESS", False),
    ],
)
def test_the_parents_status_tells_a_rollback(provider: Provider, status: str, rolls_back: bool) -> None:
    provider.aws.parent_status = status
    assert provider.parent_stack.rolls_back("stack/ours") == rolls_back


@pytest.mark.parametrize("code", ["Throttling", "ServiceUnavailable"])
def test_a_silent_parent_is_asked_again(provider: Provider, code: str) -> None:
    provider.aws.denied["cloudformation.describe_stacks"] = code
    with pytest.raises(provider.errors.TransientError):
        provider.parent_stack.rolls_back("stack/ours")


@pytest.mark.parametrize("code", ["AccessDenied", "ValidationError"])
def test_a_hidden_parent_rolls_nothing_back(provider: Provider, code: str) -> None:
    provider.aws.parent_status = "UPDATE_ROLLBACK_IN_PROGRESS"
    provider.aws.denied["cloudformation.describe_stacks"] = code
    assert not provider.parent_stack.rolls_back("stack/ours")


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "DELETE_COMPLETE", "ROLLBACK_IN_PROGRESS", ""])
def test_other_parents_clean_nothing_up(provider: Provider, status: str) -> None:
    provider.aws.parent_status = status
    assert not provider.parent_stack.cleans_up("stack/ours")
