"""Fixtures of the provider's tests: its modules, with AWS and ParallelCluster replaced by fakes."""

import types
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes import library_module
from tests.unit.assets.cluster_provider.fakes import provider as provider_fakes
from tests.unit.assets.cluster_provider.fakes.library_module import Pcluster


@pytest.fixture
def pcluster() -> Pcluster:
    return Pcluster()


@pytest.fixture
def library(
    provider: provider_fakes.Provider, pcluster: Pcluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> types.ModuleType:
    return library_module.load(provider, pcluster, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def provider_modules() -> dict[str, Any]:
    """Import the custom resource's code, fresh for each file of tests."""
    return provider_fakes.load()


@pytest.fixture
def provider(provider_modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> provider_fakes.Provider:
    """Return the custom resource's code, with fakes of ParallelCluster and AWS; /0/ ends a line of squeue."""
    played = provider_fakes.play(provider_modules, monkeypatch)
    monkeypatch.setattr(played.jobs.secrets, "token_hex", lambda _size: "0")
    return played
