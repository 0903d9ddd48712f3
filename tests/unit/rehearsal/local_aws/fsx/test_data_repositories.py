"""The local FSx checks security groups, and fails an association while another one is created."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.local_aws.fsx import data_repositories as associations
from rehearsal.local_aws.fsx.lustre import check_groups


def test_efa_needs_all_traffic_within_the_group(client: Callable[[str], Any]) -> None:
    """EC2 creates a group that lets all traffic out to addresses."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = str(ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"])
    itself: dict[str, Any] = {"UserIdGroupPairs": [{"GroupId": group}]}
    lustre = itself | {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988}
    everywhere = {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}  # no address covers EFA's traffic
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    wanted = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [subnet]}
    with pytest.raises(ClientError, match=r"InvalidNetworkSettings.*port 988"):
        client("fsx").create_file_system(**wanted, SecurityGroupIds=[group])
    for call, rule in (
        (ec2.authorize_security_group_ingress, lustre),
        (ec2.authorize_security_group_ingress, everywhere),
        (ec2.authorize_security_group_ingress, itself),
        (ec2.authorize_security_group_egress, itself),
    ):
        with pytest.raises(Exception, match="Insufficient security group permissions"):
            check_groups([group], efa=True)
        call(GroupId=group, IpPermissions=[{"IpProtocol": "-1", **rule}])
        check_groups([group], efa=False)
    check_groups([group], efa=True)
    assert client("fsx").create_file_system(**wanted, SecurityGroupIds=[group])["FileSystem"]


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


def test_what_is_deleted_leaves_nothing(site: Site) -> None:
    site.fsx.delete_data_repository_association(AssociationId=site.create("/data")["AssociationId"])
    assert site.create("/checkpoints")["Lifecycle"] == "CREATING"
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
