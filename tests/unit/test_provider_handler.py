"""The provider's decisions, with a library that answers as told (the slow tests use the real one)."""

from __future__ import annotations

import importlib.util
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROVIDER = Path(__file__).resolve().parents[2] / "assets" / "cluster_provider"
STACK, OTHER = "arn:stack/ours", "arn:stack/theirs"


class NotFoundError(Exception):
    pass


class TransientError(Exception):
    pass


class RefusedError(Exception):
    def __init__(self, content: dict[str, Any]) -> None:
        super().__init__(str(content))
        self.content = content


@dataclass
class State:
    status: str
    tags: dict[str, str] = field(default_factory=lambda: {"training-cluster:stack-id": STACK})
    failures: tuple[dict[str, Any], ...] = ()
    head_node_instance_id: str | None = "i-1"


class Library(types.ModuleType):
    """Plays ParallelCluster: one cluster or none, and a record of what was asked."""

    ClusterNotFoundError, TransientError, RefusedError, ClusterState = (
        NotFoundError,
        TransientError,
        RefusedError,
        State,
    )

    def __init__(self) -> None:
        super().__init__("library")
        self.state: State | None = None
        self.calls: list[str] = []
        self.fail: dict[str, Exception] = {}
        self.begun: State | None = None

    def _do(self, call: str) -> None:
        self.calls.append(call)
        if call in self.fail:
            self.state = self.begun or self.state
            raise self.fail[call]

    def describe(self, _name: str) -> State:
        if not self.state:
            raise NotFoundError
        return self.state

    def create(self, _name: str, _config: dict[str, Any]) -> None:
        self._do("create")

    def update(self, _name: str, _config: dict[str, Any]) -> bool:
        self._do("update")
        return True

    def delete(self, _name: str) -> None:
        self._do("delete")

    def failed_events(self, _name: str) -> list[str]:
        return ["HeadNode: no address is free"]


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def handler(library: Library, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.syspath_prepend(str(PROVIDER))
    monkeypatch.setitem(sys.modules, "library", library)
    monkeypatch.delitem(sys.modules, "messages", raising=False)
    spec = importlib.util.spec_from_file_location("provider_handler", PROVIDER / "handler.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def event(kind: str, **more: Any) -> dict[str, Any]:
    properties = {"ClusterName": "c", "ClusterConfiguration": '{"Tags": []}'}
    base = {
        "RequestType": kind,
        "StackId": STACK,
        "ResourceProperties": properties,
        "PhysicalResourceId": "c",
    }
    return base | more


def test_a_create_that_comes_twice_creates_once(handler: Any, library: Library) -> None:
    library.state = State("CREATE_IN_PROGRESS")
    assert handler.on_event(event("Create"), None) == {"PhysicalResourceId": "c"}
    assert library.calls == []


def test_a_create_that_began_in_spite_of_an_error_answer_is_kept(handler: Any, library: Library) -> None:
    library.fail["create"], library.begun = TransientError("throttled"), State("CREATE_IN_PROGRESS")
    assert handler.on_event(event("Create"), None) == {"PhysicalResourceId": "c"}


def test_a_create_that_did_not_begin_fails(handler: Any, library: Library) -> None:
    library.fail["create"] = TransientError("throttled")
    with pytest.raises(TransientError):
        handler.on_event(event("Create"), None)


def test_a_failed_create_says_why_and_its_delete_takes_our_own_cluster(
    handler: Any, library: Library
) -> None:
    library.state = State("CREATE_FAILED", failures=({"failureCode": "Boot", "failureReason": "script"},))
    with pytest.raises(RuntimeError, match=r"Boot: script.*no address is free"):
        handler.is_complete(event("Create"), None)
    handler.on_event(event("Delete"), None)
    assert library.calls == ["delete"]


def test_a_busy_cluster_is_updated_when_it_is_no_longer_busy(handler: Any, library: Library) -> None:
    library.state = State("UPDATE_IN_PROGRESS")
    answer = handler.on_event(event("Update"), None)
    assert library.calls == []
    assert handler.is_complete(event("Update", **answer), None) == {"IsComplete": False}
    library.state = State("UPDATE_COMPLETE")
    assert handler.is_complete(event("Update", **answer), None) == {"IsComplete": False}
    assert library.calls == ["update"]


def test_an_update_that_changes_nothing_succeeds_even_after_a_failed_one(
    handler: Any, library: Library
) -> None:
    library.state = State("UPDATE_FAILED")
    done = handler.is_complete(event("Update", UpdateStarted=False), None)
    assert done == {"IsComplete": True, "Data": {"HeadNodeInstanceId": "i-1"}}
    with pytest.raises(RuntimeError, match="UPDATE_FAILED"):
        handler.is_complete(event("Update", UpdateStarted=True), None)


def test_a_rename_is_refused(handler: Any, library: Library) -> None:
    with pytest.raises(RuntimeError, match="cannot be renamed"):
        handler.on_event(event("Update", PhysicalResourceId="old"), None)
    assert library.calls == []


@pytest.mark.parametrize("error", [NotFoundError(), TransientError()])
def test_a_delete_survives_an_error_answer(handler: Any, library: Library, error: Exception) -> None:
    library.state, library.fail["delete"] = State("CREATE_COMPLETE"), error
    assert handler.on_event(event("Delete"), None) == {"PhysicalResourceId": "c"}
    library.fail.clear()
    assert handler.is_complete(event("Delete"), None) == {"IsComplete": False}
    assert library.calls == ["delete", "delete"]
    library.state = None
    assert handler.is_complete(event("Delete"), None) == {"IsComplete": True}


def test_a_delete_that_failed_says_so(handler: Any, library: Library) -> None:
    library.state = State("DELETE_FAILED")
    with pytest.raises(RuntimeError, match="DELETE_FAILED"):
        handler.is_complete(event("Delete"), None)


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_cluster_of_another_stack_is_never_touched(handler: Any, library: Library, kind: str) -> None:
    library.state = State("CREATE_COMPLETE", tags={"training-cluster:stack-id": OTHER})
    with pytest.raises(RuntimeError, match="touched"):
        handler.on_event(event(kind), None)
    handler.on_event(event("Delete"), None)
    assert handler.is_complete(event("Delete"), None) == {"IsComplete": True}
    assert library.calls == []


def test_a_throttled_poll_is_no_failure(
    handler: Any, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throttled(_name: str) -> State:
        raise TransientError("slow down")

    monkeypatch.setattr(library, "describe", throttled)
    assert handler.is_complete(event("Create"), None) == {"IsComplete": False}
