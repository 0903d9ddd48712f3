"""Refusal, before anything changes, of an update that no cluster can have."""

import json
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.library import config
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

BOUNDARY, ANOTHER = ("arn:aws:iam::123456789012:policy/a", "arn:aws:iam::123456789012:policy/b")


def _config(mount: str = "/efs", *, boundary: str = "", capacity: str = "ONDEMAND") -> dict[str, Any]:
    home = {"MountDir": mount, "StorageType": "Efs", "Name": "efs", "EfsSettings": {"FileSystemId": "fs-1"}}
    bound = {"Iam": {"PermissionsBoundary": boundary}} if boundary else {}
    return config(capacity) | {"SharedStorage": [home]} | bound


def _update(provider: Provider, before: dict[str, Any], after: dict[str, Any]) -> Asked:
    provider.library.exists("CREATE_COMPLETE")
    provider.library.config |= before | {"Tags": provider.library.config["Tags"]}
    provider.aws.parent_status = "UPDATE_IN_PROGRESS"
    return provider.ask(provider.event("Update", ClusterConfiguration=json.dumps(after)))


MOVED = "/efs: fs-1 -> nothing; /home: nothing -> fs-1"


@pytest.mark.parametrize("fleet", ["RUNNING", "STOPPED"])
@pytest.mark.parametrize(
    ("before", "after", "change", "flags"),
    [
        (_config(), _config("/home"), f"({MOVED})", "flags (home, fsx_id, efs_id)"),
        *(
            (
                _config(boundary=before),
                _config(boundary=after, capacity="SPOT"),
                f"(permissions boundary: {before or 'nothing'} -> {after or 'nothing'})",
                "flag (permissions_boundary)",
            )
            for before, after in (("", BOUNDARY), (BOUNDARY, ANOTHER), (BOUNDARY, ""))
        ),
        (
            _config(),
            _config("/home", boundary=BOUNDARY),
            MOVED,
            "flags (home, fsx_id, efs_id, permissions_boundary)",
        ),
    ],
    ids=["mount", "boundary given", "another boundary", "boundary left out", "both"],
)
def test_mounts_and_permissions_boundary_stay(
    provider: Provider, *, before: dict[str, Any], after: dict[str, Any], change: str, flags: str, fleet: str
) -> None:
    provider.library.fleet = fleet
    said = _update(provider, before, after).fails()
    assert change in said
    assert f"Restore the former {flags}" in said
    assert "-c cluster_name=training-2" in said
    assert provider.library.changes == []


def test_an_update_that_keeps_both_goes_on(provider: Provider) -> None:
    _update(provider, _config(boundary=BOUNDARY), _config(boundary=BOUNDARY, capacity="SPOT")).poll()
    assert provider.library.changes == ["update"]
