"""A fake of the ParallelCluster library for the two modules of the provider that call it."""

import enum
import importlib.util
import os
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.provider import PROVIDER, Provider


class ApiError(Exception):
    """A fake of ParallelClusterApiException: an HTTP code, and content that has a message."""

    def __init__(self, code: int, **content: Any) -> None:
        super().__init__(str(content))
        self.code, self.content = code, content


class AwsError(Exception):
    """A fake of AWSClientError."""

    def __init__(self, message: str, error_code: str | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code


class Cluster:
    """A fake of pcluster.models.cluster.Cluster."""

    def __init__(self, files: str | Exception, stack: dict[str, Any] | Exception) -> None:
        self._files, self._stack = files, stack

    @property
    def stack(self) -> types.SimpleNamespace:
        if isinstance(self._stack, Exception):
            raise self._stack
        return types.SimpleNamespace(**self._stack)

    @property
    def source_config_text(self) -> str:
        if isinstance(self._files, Exception):
            raise self._files
        return self._files


class FleetStatus(enum.StrEnum):
    """A fake of ComputeFleetStatus, as far as the tests need it."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"


class Pcluster:
    """A fake of its operations: each answers from a list, and raises exceptions in it."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.resets: list[str] = []
        self.urls: dict[str, str] = {}
        """What the validator of URLs remembers."""
        self.files: str | Exception = "Region: r"
        """What the bucket has for the cluster's config."""
        self.stack: dict[str, Any] | Exception = AwsError("not allowed", "AccessDenied")
        """What CloudFormation says of a stack of the cluster's name."""
        self.fleet_item: dict[str, Any] | Exception = {}
        """What the cluster's table answers for the key of the compute fleet."""

    def cluster(self, _name: str) -> Cluster:
        return Cluster(self.files, self.stack)

    def get_item(self, _table: str, _key: dict[str, str]) -> dict[str, Any]:
        """Return an item, as DynamoResource.get_item."""
        if isinstance(self.fleet_item, Exception):
            raise self.fleet_item
        return self.fleet_item

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            self.asked.append((operation, arguments))
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class _FleetStatusManager:
    DB_KEY = "COMPUTE_FLEET"


def _url_validator(remembered: dict[str, str]) -> type:
    _cache = remembered  # as AsyncUtils.async_timeout_cache calls it

    class UrlValidator:
        def _validate_async(self, url: str) -> str:
            return _cache[url]

    return UrlValidator


def load(
    provider: Provider, pcluster: Pcluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> types.ModuleType:
    """Import these modules for one test, with this library in place of the real one; return `library`."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for variable in ("HOME", "XDG_CACHE_HOME", "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"):
        monkeypatch.setenv(variable, os.environ.get(variable, ""))  # the module sets them; this resets them
    no_cache = types.SimpleNamespace(clear_all=lambda: pcluster.resets.append("cache"))
    api = types.SimpleNamespace(ddb_resource=types.SimpleNamespace(get_item=pcluster.get_item))
    no_session = types.SimpleNamespace(instance=lambda: api, reset=lambda: pcluster.resets.append("session"))
    fleet = {"ComputeFleetStatus": FleetStatus, "JsonComputeFleetStatusManager": _FleetStatusManager}
    content = {"exception_message": lambda e: getattr(e, "content", {"message": str(e)})}
    played: dict[str, dict[str, Any]] = {
        "pcluster": {"lib": pcluster},
        "pcluster.lib": {},
        "pcluster.api": {},
        "pcluster.api.errors": {"ParallelClusterApiException": ApiError, **content},
        "pcluster.aws": {},
        "pcluster.aws.aws_api": {"AWSApi": no_session},
        "pcluster.aws.common": {"AWSClientError": AwsError, "Cache": no_cache},
        "pcluster.constants": {"PCLUSTER_DYNAMODB_PREFIX": "parallelcluster-"},
        "pcluster.models": {},
        "pcluster.models.compute_fleet_status_manager": fleet,
        "pcluster.models.cluster": {"Cluster": pcluster.cluster},
        "pcluster.validators": {},
        "pcluster.validators.s3_validators": {"UrlValidator": _url_validator(pcluster.urls)},
    }
    for name, attributes in played.items():
        module = types.ModuleType(name)
        module.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("cluster_state", "errors", "messages", "request", "retry"):
        monkeypatch.setitem(sys.modules, name, provider.modules[name])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setitem(sys.modules, "library_call", _load("library_call"))
    return _load("library")


def _load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_under_test", PROVIDER / f"{name}.py")
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def because(error: Exception, cause: Exception) -> Exception:
    """Return an error as `raise error from cause` makes it."""
    error.__cause__ = cause
    return error
