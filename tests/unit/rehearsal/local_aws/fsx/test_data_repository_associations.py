"""The local FSx fails an association that is created while another one of its file system is."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.local_aws.fsx import data_repository_associations as associations

CREATION_S = 60.0


class Clock:
    """A monotonic clock that a test sets."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Two file systems without associations, and a clock that does not move."""
    clock = Clock()
    system = SimpleNamespace(lustre_configuration={"DeploymentType": "PERSISTENT_2"})
    systems = {"fs-1": system, "fs-2": system}
    for name, value in {
        "_ASSOCIATIONS": {},
        "_AVAILABLE_AT": {},
        "_CREATION_S": CREATION_S,
        "existing": systems.__getitem__,
        "fsx": lambda: SimpleNamespace(file_systems=systems),
        "time": clock,
    }.items():
        monkeypatch.setattr(associations, name, value)
    return clock


def _wanted(path: str, system: str = "fs-1") -> dict[str, Any]:
    return {
        "FileSystemId": system,
        "FileSystemPath": path,
        "DataRepositoryPath": f"s3://bucket/{system}{path}",
    }


def _create(path: str, system: str = "fs-1") -> dict[str, Any]:
    request = SimpleNamespace(body=json.dumps(_wanted(path, system)))
    created: dict[str, Any] = json.loads(associations.create_data_repository_association(request))
    return dict(created["Association"])


def _lifecycles() -> dict[str, str]:
    answer = json.loads(associations.describe_data_repository_associations(SimpleNamespace(body="{}")))
    return {each["FileSystemPath"]: each["Lifecycle"] for each in answer["Associations"]}


def test_second_association_waits_for_the_first(clock: Clock) -> None:
    assert _create("/data")["Lifecycle"] == "CREATING"
    assert _create("/data", "fs-2")["Lifecycle"] == "CREATING", "of another file system"
    second = _create("/checkpoints")
    assert second["Lifecycle"] == "FAILED"
    assert "required permissions for the S3 bucket" in second["FailureDetails"]["Message"]
    clock.now = CREATION_S - 1
    assert _lifecycles() == {"/data": "CREATING", "/checkpoints": "FAILED"}
    clock.now = CREATION_S
    assert _lifecycles() == {"/data": "AVAILABLE", "/checkpoints": "FAILED"}
    assert _create("/later")["Lifecycle"] == "CREATING"


@pytest.mark.usefixtures("clock")
def test_deleted_association_blocks_no_other() -> None:
    first = _create("/data")["AssociationId"]
    associations.delete_data_repository_association(
        SimpleNamespace(body=json.dumps({"AssociationId": first}))
    )
    assert _create("/checkpoints")["Lifecycle"] == "CREATING"


@pytest.mark.usefixtures("clock")
def test_cloudformation_waits_for_its_own_alone() -> None:
    for path in ("/data", "/checkpoints"):
        id_, _ = associations._create("Link", _wanted(path), "stack")
        assert associations._find(id_)["Lifecycle"] == "AVAILABLE"
    _create("/by-hand")
    with pytest.raises(RuntimeError, match="required permissions for the S3 bucket"):
        associations._create("Link", _wanted("/third"), "stack")
    assert "/third" not in _lifecycles()
