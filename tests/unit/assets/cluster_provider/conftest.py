"""Fixtures of the provider's tests: its modules, with AWS and ParallelCluster replaced by fakes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes import provider as provider_fakes


@pytest.fixture(scope="module")
def provider_modules() -> dict[str, Any]:
    """Import the custom resource's code, fresh for each file of tests."""
    return provider_fakes.load()


@pytest.fixture
def provider(provider_modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> provider_fakes.Provider:
    """Return the custom resource's code, with fakes of ParallelCluster and AWS."""
    return provider_fakes.play(provider_modules, monkeypatch)
