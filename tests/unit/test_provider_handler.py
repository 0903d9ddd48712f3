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
        self.wants_stopped_fleet = content.get("wants_stopped_fleet", False)


@dataclass
class State:
    status: str
    tags: dict[str, str] = field(default_factory=lambda: {"training-cluster:stack-id": STACK})
    failures: tuple[dict[str, Any], ...] = ()
    head_node_instance_id: str | None = "i-1"
    last_updated: str = "monday"


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
        self.fleet, self.running = "RUNNING", 0

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

    def fleet_status(self, _name: str) -> str:
        return self.fleet

    def request_fleet(self, _name: str, status: str) -> None:
        self._do(status)
        self.fleet = status

    def running_compute_nodes(self, _name: str) -> int:
        return self.running

    def failed_events(self, _name: str) -> list[str]:
        return ["HeadNode: no address is free"]


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def handler(library: Library, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.syspath_prepend(str(PROVIDER))
    monkeypatch.setitem(sys.modules, "library", library)
    for module_name in ("messages", "fleet"):
        monkeypatch.delitem(sys.modules, module_name, raising=False)
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


WANTS_STOP = {
    "wants_stopped_fleet": True,
    "update_validation_errors": [
        {"parameter": "CapacityType", "current_value": "ONDEMAND", "requested_value": "SPOT"}
    ],
}
PROPERTIES = {"ClusterName": "c", "ClusterConfiguration": '{"Scheduling": {"SlurmSettings": {}}}'}


def _update_event(on_busy: str = "fail", **more: Any) -> dict[str, Any]:
    return event("Update", ResourceProperties=PROPERTIES | {"OnBusy": on_busy}, **more)


def _begin(handler: Any, library: Library, on_busy: str = "fail") -> dict[str, Any]:
    """An update that wants a stopped fleet has begun; the event of the next poll."""
    library.state, library.fail["update"] = State("CREATE_COMPLETE"), RefusedError(WANTS_STOP)
    answer = handler.on_event(_update_event(on_busy), None)
    library.fail.clear()
    return _update_event(on_busy, **answer)


def _poll(handler: Any, asked: dict[str, Any]) -> bool:
    return bool(handler.is_complete(asked, None)["IsComplete"])


def test_a_fleet_is_stopped_for_an_update_that_wants_it_and_started_again(
    handler: Any, library: Library
) -> None:
    asked = _begin(handler, library)
    assert library.calls == ["update", "STOP_REQUESTED"]
    for library.fleet in ("STOP_REQUESTED", "STOPPING"):
        assert not _poll(handler, asked)
    library.fleet = "STOPPED"
    assert not _poll(handler, asked)
    library.state = State("UPDATE_IN_PROGRESS", last_updated="tuesday")
    assert not _poll(handler, asked)
    library.state = State("UPDATE_COMPLETE", last_updated="tuesday")
    for library.fleet in ("STOPPED", "START_REQUESTED", "STARTING"):
        assert not _poll(handler, asked)
    library.fleet = "RUNNING"
    assert _poll(handler, asked)
    assert library.calls == ["update", "STOP_REQUESTED", "update", "START_REQUESTED"]


def test_a_fleet_is_started_again_when_the_update_failed_too(handler: Any, library: Library) -> None:
    asked = _begin(handler, library)
    library.state, library.fleet = State("UPDATE_FAILED", last_updated="tuesday"), "STOPPED"
    assert not _poll(handler, asked)
    assert library.calls[-1] == "START_REQUESTED"
    library.fleet = "RUNNING"
    with pytest.raises(RuntimeError, match="UPDATE_FAILED"):
        _poll(handler, asked)


def test_a_fleet_is_started_again_when_the_library_refuses_even_so(handler: Any, library: Library) -> None:
    asked = _begin(handler, library)
    library.fleet, library.fail["update"] = "STOPPED", RefusedError({"message": "never"})
    with pytest.raises(RuntimeError, match="never"):
        _poll(handler, asked)
    assert library.calls[-1] == "START_REQUESTED"


def test_a_fleet_that_somebody_stopped_stays_stopped(handler: Any, library: Library) -> None:
    library.fleet = "STOPPED"
    asked = _begin(handler, library)
    library.state, library.fleet = State("UPDATE_COMPLETE", last_updated="tuesday"), "STOPPED"
    assert _poll(handler, asked)
    assert "START_REQUESTED" not in library.calls


def test_a_fleet_that_somebody_starts_meanwhile_is_stopped_again(handler: Any, library: Library) -> None:
    asked = _begin(handler, library)
    library.fleet = "RUNNING"
    assert not _poll(handler, asked)
    assert library.calls == ["update", "STOP_REQUESTED", "STOP_REQUESTED"]


def test_nodes_that_run_are_not_stopped_unless_that_is_asked_for(handler: Any, library: Library) -> None:
    library.running = 3
    with pytest.raises(RuntimeError, match=r"3 compute nodes of c run.*on_busy=stop.*ONDEMAND -> SPOT"):
        _begin(handler, library)
    assert library.calls == ["update"]
    library.fail.clear()
    _begin(handler, library, "stop")
    assert library.calls[-1] == "STOP_REQUESTED"


def test_what_cannot_be_drained_is_refused_with_the_way_round(handler: Any, library: Library) -> None:
    with pytest.raises(RuntimeError, match=r"draining nodes is not enough.*-c on_busy=stop"):
        _begin(handler, library, "drain")
    assert library.calls == ["update"]


def test_draining_is_the_librarys_own_strategy_and_only_in_updates(handler: Any) -> None:
    drained = handler._config(_update_event("drain"))
    assert drained["Scheduling"]["SlurmSettings"] == {"QueueUpdateStrategy": "DRAIN"}
    created = handler._config(event("Create", ResourceProperties=PROPERTIES | {"OnBusy": "drain"}))
    assert created["Scheduling"]["SlurmSettings"] == {}


def test_a_throttled_fleet_call_is_no_failure(handler: Any, library: Library) -> None:
    asked = _begin(handler, library)
    library.fleet, library.fail["update"] = "STOPPED", TransientError("slow down")
    assert not _poll(handler, asked)
