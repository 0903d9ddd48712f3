"""Fixtures of `trainctl verify`'s tests: a cluster in the local AWS."""

from collections.abc import Callable

import pytest

from tests.unit.ops.verify.deployed import Deployed, Made, deploy


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a deployed config with another idle time than the catalog's."""
    deployed = {"Scheduling": {"SlurmSettings": {"ScaledownIdletime": 20}}}
    monkeypatch.setattr("ops.verify.scene.read_cluster_config", lambda _name, _client: deployed)


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
