"""Fixtures of the tests of install steps."""

import shutil
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine
from training_cluster.paths import ASSETS


@pytest.fixture(scope="session")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of one environment with pip for all tests, which the first that needs it makes."""
    return tmp_path_factory.mktemp("venv") / "venv"


@pytest.fixture
def machine(tmp_path: Path, venv: Path) -> Machine:
    """Return a machine for one install step, with a copy of the training scripts."""
    machine = Machine(tmp_path, venv=venv)
    (machine.bundle / "training").unlink()
    shutil.copytree(ASSETS / "training", machine.bundle / "training")
    return machine
