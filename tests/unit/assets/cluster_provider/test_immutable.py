"""Refusal, before anything changes, of an update that no cluster can have."""

import json

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
    config,
)
from tests.unit.assets.cluster_provider.fakes.provider import Provider


@pytest.fixture(autouse=True)
def _cluster_stands(provider: Provider) -> None:
    provider.library.exists("CREATE_COMPLETE")


def _mounting(folder: str) -> dict[str, object]:
    home = {"MountDir": folder, "StorageType": "Efs", "Name": "efs", "EfsSettings": {"FileSystemId": "fs-1"}}
    return config() | {"SharedStorage": [home]}


BOUNDARY, ANOTHER_BOUNDARY = ("arn:aws:iam::123456789012:policy/a", "arn:aws:iam::123456789012:policy/b")


def _bounded(boundary: str | None, *, capacity: str = "ONDEMAND") -> dict[str, object]:
    return config(capacity) | ({"Iam": {"PermissionsBoundary": boundary}} if boundary else {})


@pytest.mark.parametrize("fleet", ["RUNNING", "STOPPED"])
def test_mounts_of_a_cluster_stay(provider: Provider, fleet: str) -> None:
    provider.library.config |= _mounting("/efs") | {"Tags": provider.library.config["Tags"]}
    provider.library.fleet = fleet
    provider.aws.parent_status = "UPDATE_IN_PROGRESS"
    asked = provider.ask(provider.event("Update", ClusterConfiguration=json.dumps(_mounting("/home"))))
    said = asked.fails()
    assert "(/efs: fs-1 -> nothing; /home: nothing -> fs-1)" in said
    assert "Restore the former flags (home, fsx_id, efs_id)" in said
    assert "-c cluster_name=training-2" in said
    assert provider.library.changes == []


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (None, BOUNDARY, f"nothing -> {BOUNDARY}"),
        (BOUNDARY, ANOTHER_BOUNDARY, f"{BOUNDARY} -> {ANOTHER_BOUNDARY}"),
        (BOUNDARY, None, f"{BOUNDARY} -> nothing"),
    ],
    ids=["given", "another", "left out"],
)
def test_a_clusters_permissions_boundary_stays(
    provider: Provider, before: str | None, after: str | None, change: str
) -> None:
    provider.library.config |= _bounded(before) | {"Tags": provider.library.config["Tags"]}
    provider.aws.parent_status = "UPDATE_IN_PROGRESS"
    wanted = json.dumps(_bounded(after, capacity="SPOT"))
    said = provider.ask(provider.event("Update", ClusterConfiguration=wanted)).fails()
    assert f"(permissions boundary: {change})" in said
    assert "Restore the former flag (permissions_boundary)" in said
    assert "-c cluster_name=training-2" in said
    assert provider.library.changes == []


def test_two_kept_settings_name_both_flags(provider: Provider) -> None:
    provider.library.config |= _mounting("/efs") | {"Tags": provider.library.config["Tags"]}
    provider.aws.parent_status = "UPDATE_IN_PROGRESS"
    wanted = json.dumps(_mounting("/home") | _bounded(BOUNDARY) | {"Tags": []})
    said = provider.ask(provider.event("Update", ClusterConfiguration=wanted)).fails()
    assert "Restore the former flags (home, fsx_id, efs_id, permissions_boundary)" in said


def test_an_update_that_keeps_the_boundary_goes_on(provider: Provider) -> None:
    provider.library.config |= _bounded(BOUNDARY) | {"Tags": provider.library.config["Tags"]}
    provider.aws.parent_status = "UPDATE_IN_PROGRESS"
    wanted = json.dumps(_bounded(BOUNDARY, capacity="SPOT"))
    provider.ask(provider.event("Update", ClusterConfiguration=wanted)).poll()
    assert provider.library.changes == ["update"]


def test_an_update_that_mounts_the_same_goes_on(provider: Provider) -> None:
    provider.library.config |= _mounting("/efs") | {"Tags": provider.library.config["Tags"]}
    wanted = _mounting("/efs") | {"Scheduling": config("SPOT")["Scheduling"]}
    provider.aws.parent_status = "UPDATE_IN_PROGRESS"
    provider.ask(provider.event("Update", ClusterConfiguration=json.dumps(wanted))).poll()
    assert provider.library.changes == ["update"]
