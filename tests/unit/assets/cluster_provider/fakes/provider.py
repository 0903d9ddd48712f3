"""The provider alone: its modules, with fakes of ParallelCluster's library and boto3."""

import datetime
import importlib
import json
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest

from tests.unit.assets.cluster_provider.fakes.aws import BUCKET, LOG_GROUP, PARAMETER, FakeAws
from tests.unit.assets.cluster_provider.fakes.library import NAME, STACK, FakeLibrary, config
from training_cluster.paths import ASSETS

PROVIDER = ASSETS / "cluster_provider"


@dataclass
class Clock:
    """A fake of `record.now`, which advances at each call."""

    at: datetime.datetime = field(
        default_factory=lambda: datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    )

    def now(self, timespec: str = "seconds") -> str:
        self.at += datetime.timedelta(microseconds=1)
        return self.at.isoformat(timespec=timespec)

    def goes_on(self, *, minutes: int) -> None:
        self.at += datetime.timedelta(minutes=minutes)


@dataclass(frozen=True)
class Asked:
    """A request that on_event let pass; `poll` is one call of is_complete."""

    handler: Any
    event: dict[str, Any]

    def answer(self) -> dict[str, Any]:
        return dict(self.handler.is_complete(self.event, None))

    def poll(self) -> bool:
        return bool(self.answer()["IsComplete"])

    def fails(self) -> str:
        """Poll once more; return the reason of the failure."""
        with pytest.raises(RuntimeError) as failure:
            self.answer()
        return str(failure.value)


@dataclass(frozen=True)
class Provider:
    """The modules under test and their fakes."""

    modules: dict[str, Any]
    library: FakeLibrary
    aws: FakeAws
    slept: list[float]
    clock: Clock

    def __getattr__(self, module: str) -> Any:
        try:
            return self.modules[module]
        except KeyError:
            raise AttributeError(module) from None

    def event(self, kind: str, *, request: str = "", **properties: Any) -> dict[str, Any]:
        """Return an event as CloudFormation sends it; None leaves a property out."""
        named = {"ClusterName": NAME, "ClusterConfiguration": json.dumps(config()), "OnBusy": "fail"}
        physical = {} if kind == "Create" else {"PhysicalResourceId": NAME}
        return {
            "RequestType": kind,
            "RequestId": request or f"{kind}-1",
            "StackId": STACK,
            "ResourceProperties": {k: v for k, v in (named | properties).items() if v is not None},
            **physical,
        }

    def ask(self, event: dict[str, Any]) -> Asked:
        """Call on_event, and pass on its answer as CDK's framework does."""
        answered = event | self.handler.on_event(event, None)
        # Another one would be a replacement, which the framework refuses at a Delete.
        assert answered["PhysicalResourceId"] == event.get("PhysicalResourceId", NAME)
        return Asked(self.handler, answered)

    def create(self, **more: Any) -> Asked:
        self.aws.parent_status = "CREATE_IN_PROGRESS"
        return self.ask(self.event("Create", **more))

    def update(self, *, on_busy: str = "fail", request: str = "") -> Asked:
        """Update the cluster to spot capacity."""
        self.aws.parent_status = "UPDATE_IN_PROGRESS"
        wanted = {"ClusterConfiguration": json.dumps(config("SPOT")), "OnBusy": on_busy}
        return self.ask(self.event("Update", request=request, **wanted))

    def roll_back(self) -> Asked:
        """Roll back to the config before `update`."""
        self.aws.parent_status = "UPDATE_ROLLBACK_IN_PROGRESS"
        return self.ask(self.event("Update", request="Rollback-1"))

    def delete(self, **more: Any) -> Asked:
        self.aws.parent_status = "DELETE_IN_PROGRESS"
        return self.ask(self.event("Delete", **more))

    def refuses(self, ask: Callable[[], Asked]) -> str:
        """Return the reason with which on_event refuses."""
        with pytest.raises(RuntimeError) as refusal:
            ask()
        return str(refusal.value)

    @property
    def record_value(self) -> dict[str, Any]:
        """Read the value of the SSM parameter."""
        return dict(json.loads(self.aws.parameters[PARAMETER]))

    @property
    def stages(self) -> list[str]:
        """Names of the stages so far."""
        return [stage for stage, _ in self.record_value["stages"]]

    @property
    def saved(self) -> dict[str, str]:
        """Return the objects in the bucket, by the last part of the key."""
        return {key.rpartition("/")[2]: text for key, text in self.aws.objects.items()}

    def throttled(self) -> Exception:
        error: Exception = self.errors.TransientError("Rate exceeded")
        return error

    def refused(self, message: str = "no", **content: Any) -> Exception:
        error: Exception = self.errors.RefusedError({"message": message, **content})
        return error


def _library(module: Callable[[str], Any]) -> FakeLibrary:
    return FakeLibrary(errors=module("errors"), cluster_state=module("cluster_state"))


def load() -> dict[str, Any]:
    """Import the provider's modules by the plain names that they use, and leave no trace of it."""
    names = [path.stem for path in PROVIDER.glob("*.py")]
    former = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)  # it would lie in the function's code
            patch.syspath_prepend(str(PROVIDER))
            sys.modules["library"] = _library(importlib.import_module)
            sys.modules["library_call"] = types.ModuleType("library_call")  # it imports the real library
            return {name: importlib.import_module(name) for name in names}
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(former)


def play(modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Provider:
    """Give these modules a library, an AWS and an environment of their own, for one test."""
    library, aws, slept, clock = _library(modules.__getitem__), FakeAws(), list[float](), Clock()
    for module in modules.values():
        if hasattr(module, "library"):
            monkeypatch.setattr(module, "library", library)
    monkeypatch.setattr(modules["record"], "now", clock.now)
    monkeypatch.setattr(boto3, "client", aws.client)
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setenv("PROGRESS_PARAMETER", PARAMETER)
    monkeypatch.setenv("PROGRESS_LOG_GROUP", LOG_GROUP)
    monkeypatch.setenv("LOGS_BUCKET", BUCKET)
    return Provider(modules, library, aws, slept, clock)
