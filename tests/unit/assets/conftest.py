"""Fixtures of the tests of install steps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine


@pytest.fixture(scope="session")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one environment with pip for all tests, since ensurepip takes seconds."""
    folder = tmp_path_factory.mktemp("venv") / "venv"
    subprocess.run(["/usr/bin/env", "python3", "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def machine(tmp_path: Path, venv: Path) -> Machine:
    """Return a machine for one install step."""
    return Machine(tmp_path, venv=venv)
