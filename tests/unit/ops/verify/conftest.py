"""Fixtures of `trainctl verify`'s tests: a cluster in the local AWS."""

from collections.abc import Callable

import pytest

from tests.unit.ops.verify.deployed import Deployed, Made, deploy


@pytest.fixture(scope="module")
def made() -> Made:
    """Deploy a cluster."""
    return deploy()


@pytest.fixture
def deployed(made: Made, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Deployed]:
    """Return a function that makes a cluster, of which its arguments change one thing; nothing waits."""
    monkeypatch.setattr("ops.account.head_node._FIRST_POLL_S", 0)
    monkeypatch.setattr("ops.verify.links._POLL_S", 0.01)
    monkeypatch.setattr("ops.verify.links.MOST_WAIT_S", 0.05)
    return lambda **changes: Deployed(made, **changes)
