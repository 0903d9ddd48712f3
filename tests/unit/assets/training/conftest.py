"""trainkit and the modules of a workload, as ranks import them; the folder of a test names the workload."""

import sys
from collections.abc import Iterator

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path
from training_cluster.paths import TRAINING

sys.path.append(str(TRAINING))


@pytest.fixture
def load(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, request.path.parent.name.replace("_", "-")) as load:
        yield load
