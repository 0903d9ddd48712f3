"""The local FSx fails an association that is created while another one of its file system is."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.local_aws.fsx import data_repositories as associations

CREATION_S = 60.0


class Site:
    """Two file systems without associations, and a clock that stays at `now`."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        self.now, self.fsx, self.ec2 = 0.0, client("fsx"), client("ec2")
        subnet = self.ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        wanted = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [subnet]}
        wanted["LustreConfiguration"] = {"DeploymentType": "PERSISTENT_2"}
        made = [self.fsx.create_file_system(**wanted)["FileSystem"]["FileSystemId"] for _ in range(2)]
        self.system, self.other = made

    def wanted(self, path: str, system: str = "") -> dict[str, Any]:
        id_ = system or self.system
        return {"FileSystemId": id_, "FileSystemPath": path, "DataRepositoryPath": f"s3://bucket/{id_}{path}"}

    def create(self, path: str, system: str = "") -> dict[str, Any]:
        return dict(self.fsx.create_data_repository_association(**self.wanted(path, system))["Association"])

    def lifecycles(self, **asked: Any) -> dict[str, str]:
        answer = self.fsx.describe_data_repository_associations(**asked)
        return {each["FileSystemPath"]: each["Lifecycle"] for each in answer["Associations"]}


@pytest.fixture
def site(client: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(client)
    monkeypatch.setattr(associations, "_CREATION_S", CREATION_S)
    monkeypatch.setattr(associations, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_second_association_waits_for_the_first(site: Site) -> None:
    assert site.create("/data")["Lifecycle"] == "CREATING"
    assert site.create("/other", site.other)["Lifecycle"] == "CREATING", "of another file system"
    second = site.create("/checkpoints")
    assert second["Lifecycle"] == "FAILED"
    assert "required permissions for the S3 bucket" in second["FailureDetails"]["Message"]
    lasting = {"/checkpoints": "FAILED"}
    site.now = CREATION_S - 1
    assert site.lifecycles() == lasting | dict.fromkeys(["/data", "/other"], "CREATING")
    site.now = CREATION_S
    assert site.lifecycles() == lasting | dict.fromkeys(["/data", "/other"], "AVAILABLE")
    of_other = [{"Name": "file-system-id", "Values": [site.other]}]
    assert site.lifecycles(Filters=of_other) == {"/other": "AVAILABLE"}
    assert site.create("/later")["Lifecycle"] == "CREATING"


def test_deleted_association_blocks_no_other(site: Site) -> None:
    site.fsx.delete_data_repository_association(AssociationId=site.create("/data")["AssociationId"])
    assert site.create("/checkpoints")["Lifecycle"] == "CREATING"


def test_deleted_file_system_leaves_no_interface(site: Site) -> None:
    for id_ in (site.system, site.other):
        site.fsx.delete_file_system(FileSystemId=id_)
    assert site.ec2.describe_network_interfaces()["NetworkInterfaces"] == []


def test_cloudformation_waits_for_its_own_alone(site: Site) -> None:
    for path in ("/data", "/checkpoints"):
        id_, _ = associations._create("Link", site.wanted(path), "stack")
        assert associations._find(id_)["Lifecycle"] == "AVAILABLE"
    site.create("/by-hand")
    with pytest.raises(RuntimeError, match="required permissions for the S3 bucket"):
        associations._create("Link", site.wanted("/third"), "stack")
    assert "/third" not in site.lifecycles()
