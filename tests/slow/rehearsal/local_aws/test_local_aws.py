"""The local AWS's corrections of its emulators, tested with the real library."""

import datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.slow.account import Account, Config, Queue
from tests.slow.resources import as_outputs, attribute, database

pytestmark = pytest.mark.slow

P4D, P5 = "p4d.24xlarge", "p5.48xlarge"
EFA = {"Efa": {"Enabled": True}}


def test_capacity_reservation_has_type_count_and_group(account: Account) -> None:
    ec2, network = account.client("ec2"), account.network
    group, _ = (
        ec2.create_placement_group(GroupName=name, Strategy="cluster")["PlacementGroup"]
        for name in ("reserved", "other")
    )
    reservation = ec2.create_capacity_reservation(
        InstanceType=P4D,
        InstancePlatform="Linux/UNIX",
        AvailabilityZone="us-east-1a",
        InstanceCount=2,
        PlacementGroupArn=group["GroupArn"],
    )["CapacityReservation"]

    def config(*, instance_type: str = P4D, count: int = 2, group: str = "reserved", id_: str = "") -> Config:
        target = {"CapacityReservationId": id_ or reservation["CapacityReservationId"]}
        return network.config(
            network.queue(
                "gpu",
                instance_type,
                count=count,
                resource={**EFA, "CapacityReservationTarget": target},
                networking={"PlacementGroup": {"Enabled": True, "Name": group}},
            )
        )

    refused = account.refusals(
        right=config(),
        too_many=config(count=3),
        other_type=config(instance_type=P5),
        other_group=config(group="other"),
        unknown=config(id_="cr-0123456789abcdef0"),
    )
    assert refused["right"] == []
    assert refused["too_many"][0].startswith("CapacityReservationSizeValidator")
    assert refused["other_type"][0].startswith("CapacityReservationValidator")
    assert refused["other_group"][0].startswith("PlacementGroupCapacityReservationValidator")
    assert "cr-0123456789abcdef0" in refused["unknown"][0]
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        ec2.describe_capacity_reservations(CapacityReservationIds=["cr-0123456789abcdef0"])


def test_capacity_block_is_used_in_its_time(account: Account) -> None:
    ec2, network = account.client("ec2"), account.network
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3)

    def buy(**when: Any) -> dict[str, Any]:
        offerings = ec2.describe_capacity_block_offerings(
            InstanceType=P5, InstanceCount=2, CapacityDurationHours=24, **when
        )["CapacityBlockOfferings"]
        [offering] = [o for o in offerings if o["AvailabilityZone"] == "us-east-1a"]
        block: dict[str, Any] = ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offering["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
        )["CapacityReservation"]
        return block

    def queue(reservation: dict[str, Any], count: int) -> Queue:
        return network.queue(
            "gpu",
            P5,
            count=count,
            resource={**EFA, "MinCount": count},
            CapacityType="CAPACITY_BLOCK",
            CapacityReservationTarget={"CapacityReservationId": reservation["CapacityReservationId"]},
        )

    running, scheduled = buy(), buy(StartDateRange=later)
    on_demand = ec2.create_capacity_reservation(
        InstanceType=P5, InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=2
    )["CapacityReservation"]
    assert (running["State"], running["TotalInstanceCount"]) == ("active", 2)
    assert (scheduled["State"], scheduled["TotalInstanceCount"]) == ("scheduled", 0)
    refused = account.refusals(
        running=network.config(queue(running, 2)),
        scheduled=network.config(queue(scheduled, 2)),
        too_many=network.config(queue(running, 3)),
        on_demand=network.config(queue(on_demand, 2)),
    )
    assert (refused["running"], refused["scheduled"]) == ([], [])
    assert refused["too_many"][0].startswith("CapacityReservationSizeValidator")
    assert "is not a Capacity Block reservation" in refused["on_demand"][0]
    sold = ec2.describe_capacity_block_offerings(
        InstanceType="m6i.xlarge", InstanceCount=1, CapacityDurationHours=24
    )
    assert sold["CapacityBlockOfferings"] == []


def test_ssm_parameters_are_read_at_each_deploy(account: Account) -> None:
    ssm, image = account.client("ssm"), "ami-0123456789abcdef1"
    ssm.put_parameter(Name="/images/v100", Type="String", Value="ami-0123456789abcdef0")
    template = {
        "Parameters": {
            "Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": "/images/v100"}
        },
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": as_outputs(Image={"Ref": "Image"}),
    }
    assert account.deploy("by-parameter", template) == {"Image": "ami-0123456789abcdef0"}
    ssm.put_parameter(Name="/images/v100", Type="String", Value=image, Overwrite=True)
    assert account.deploy("by-parameter", template) == {"Image": image}
    ssm.delete_parameter(Name="/images/v100")
    missing = r"Unable to fetch parameters \[/images/v100\] from parameter store for this account"
    with pytest.raises(ClientError, match=missing):
        account.deploy("by-parameter-2", template)


def test_database_leaves_its_snapshot_and_secret(account: Account) -> None:
    network, rds, secrets = account.network, account.client("rds"), account.client("secretsmanager")
    outputs = account.deploy("database", database(account, 0, 1))
    assert secrets.get_secret_value(SecretId=outputs["Secret"])["SecretString"].isalnum()
    config = network.config()
    config["Scheduling"]["SlurmSettings"] = {
        "Database": {
            "Uri": f"{outputs['Host']}:{outputs['Port']}",
            "UserName": "slurm",
            "PasswordSecretArn": outputs["Secret"],
        }
    }
    assert account.refusals(database=config) == {"database": []}
    account.delete("database")
    assert rds.describe_db_clusters()["DBClusters"] == []
    assert len(rds.describe_db_cluster_snapshots()["DBClusterSnapshots"]) == 1
    assert secrets.describe_secret(SecretId=outputs["Secret"])
    with pytest.raises(AssertionError, match="Add subnets to cover at least 2 AZs"):
        account.deploy("one-zone", database(account, 0, 0))


def test_efs_needs_a_group_with_nfs(account: Account) -> None:
    network = account.network

    def target(system: str, group: str) -> dict[str, Any]:
        where = {"SubnetId": network.private, "SecurityGroups": [attribute(group, "GroupId")]}
        return {"Type": "AWS::EFS::MountTarget", "Properties": {"FileSystemId": {"Ref": system}, **where}}

    elastic = {"Encrypted": True, "ThroughputMode": "elastic", "BackupPolicy": {"Status": "ENABLED"}}
    provisioned = {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 256}
    nfs = {"IpProtocol": "tcp", "FromPort": 2049, "ToPort": 2049, "SourceSecurityGroupId": network.nodes}
    anywhere = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
    open_ = {"SecurityGroupIngress": [nfs], "SecurityGroupEgress": [anywhere]}
    group = {"GroupDescription": "NFS", "VpcId": network.vpc}
    user = {"FileSystemId": {"Ref": "Home"}, "PosixUser": {"Uid": "1000", "Gid": "1000"}}
    template = {
        "Resources": {
            "Open": {"Type": "AWS::EC2::SecurityGroup", "Properties": group | open_},
            "Closed": {"Type": "AWS::EC2::SecurityGroup", "Properties": group},
            "Home": {"Type": "AWS::EFS::FileSystem", "Properties": elastic},
            "Other": {"Type": "AWS::EFS::FileSystem", "Properties": provisioned},
            "HomeTarget": target("Home", "Open"),
            "OtherTarget": target("Other", "Closed"),
            "Point": {"Type": "AWS::EFS::AccessPoint", "Properties": user},
        },
        "Outputs": as_outputs(Home={"Ref": "Home"}, Other={"Ref": "Other"}, Point={"Ref": "Point"}),
    }
    outputs = account.deploy("efs", template)

    def config(id_: str, **settings: Any) -> Config:
        efs = {"FileSystemId": id_, "EncryptionInTransit": True, **settings}
        storage = {"Name": "home", "StorageType": "Efs", "MountDir": "/shared-home", "EfsSettings": efs}
        return network.config(SharedStorage=[storage])

    refused = account.refusals(
        home=config(outputs["Home"]),
        point=config(outputs["Home"], AccessPointId=outputs["Point"]),
        other=config(outputs["Other"]),
        unknown=config("fs-0123456789abcdef0"),
    )
    assert (refused["home"], refused["point"]) == ([], [])
    assert "to allow traffic on port 2049" in refused["other"][0]
    assert "'fs-0123456789abcdef0' does not exist" in refused["unknown"][0]
    elastic["ThroughputMode"] = "bursting"
    assert account.deploy("efs", template) == outputs
    account.delete("efs")
    assert account.client("efs").describe_file_systems()["FileSystems"] == []


def test_lustre_is_linked_to_s3(account: Account) -> None:
    network, fsx = account.network, account.client("fsx")

    def association(path: str, events: list[str]) -> dict[str, Any]:
        properties = {
            "FileSystemId": {"Ref": "Lustre"},
            "FileSystemPath": path,
            "DataRepositoryPath": f"s3://some-bucket{path}",
            "S3": {"AutoExportPolicy": {"Events": events}},
        }
        return {"Type": "AWS::FSx::DataRepositoryAssociation", "Properties": properties}

    lustre = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [network.private],
        "SecurityGroupIds": [network.nodes],
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
    }
    resources = {
        "Lustre": {"Type": "AWS::FSx::FileSystem", "Properties": lustre},
        "Data": association("/data", ["NEW"]),
    }
    template = {
        "Resources": resources,
        "Outputs": as_outputs(Lustre={"Ref": "Lustre"}, Data=attribute("Data", "AssociationId")),
    }
    outputs = account.deploy("lustre", template)
    settings = {"FsxLustreSettings": {"FileSystemId": outputs["Lustre"]}}
    storage = {"Name": "fsx", "StorageType": "FsxLustre", "MountDir": "/fsx", **settings}
    assert account.refusals(lustre=network.config(SharedStorage=[storage])) == {"lustre": []}

    resources["Data"] = association("/data", ["NEW", "CHANGED"])
    assert account.deploy("lustre", template) == outputs
    [found] = fsx.describe_data_repository_associations(AssociationIds=[outputs["Data"]])["Associations"]
    assert found["S3"]["AutoExportPolicy"]["Events"] == ["NEW", "CHANGED"]

    resources["Below"] = association("/data/below", ["NEW"]) | {"DependsOn": "Data"}
    with pytest.raises(AssertionError, match="FileSystemPath /data/below overlaps with /data"):
        account.deploy("lustre", template)
    account.delete("lustre")
    assert fsx.describe_data_repository_associations()["Associations"] == []
    with pytest.raises(ClientError, match="FileSystemNotFound"):
        fsx.describe_file_systems(FileSystemIds=[outputs["Lustre"]])
