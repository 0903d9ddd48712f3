"""Synthesises the app once a family; the tests read the templates."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.composition import add_stacks
from tests.unit.assets.bootstrap.step_machine import Machine
from tests.unit.assets.cluster_provider import provider_fakes
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings

# ministack writes a key when it is imported, to /tmp unless told otherwise.
os.environ["STATE_DIR"] = str(ROOT / ".cache" / "ministack")
Templates = dict[str, Template]


@cache
def _synthesise(flags: tuple[tuple[str, str], ...]) -> Templates:
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context)
    stacks = add_stacks(app, read_settings(dict(flags)))
    return {stack.node.id: Template.from_stack(stack) for stack in stacks}


@pytest.fixture(scope="session")
def synthesise() -> Callable[..., Templates]:
    """Return templates by stack id, for context flags given as keywords."""
    return lambda **flags: _synthesise(tuple(sorted(flags.items())))


@pytest.fixture(scope="module")
def provider_modules() -> dict[str, Any]:
    """Import the custom resource's code, fresh for each file of tests."""
    return provider_fakes.load()


@pytest.fixture
def provider(provider_modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> provider_fakes.Provider:
    """Give the custom resource's code, with ParallelCluster and AWS played in memory."""
    return provider_fakes.play(provider_modules, monkeypatch)


@pytest.fixture(scope="session")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One environment with pip, made once: ensurepip takes seconds."""
    folder = tmp_path_factory.mktemp("venv") / "venv"
    subprocess.run(["/usr/bin/env", "python3", "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def machine(tmp_path: Path, venv: Path) -> Machine:
    """A machine for one install step."""
    return Machine(tmp_path, venv=venv)
