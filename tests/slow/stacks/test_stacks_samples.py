"""Every sample of overrides and imports, deployed once: no right lacks, and none is for an unused type."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.importing.command import import_config
from ops.importing.flags import OPEN_ROLE
from ops.preflight.config_ids import known_ids
from ops.preflight.existing_network import read_existing_network
from rehearsal.deployed import read_deployed_cluster
from rehearsal.local_aws.address import ACCOUNT
from rehearsal.local_aws.rights.denied import denied_calls
from rehearsal.validation.cases import FEATURES, NOT_THERE
from rehearsal.validation.foundation import register_image
from rehearsal.validation.samples import import_samples
from tests.slow.conftest import Cloud
from training_cluster.flags.file import read_flags
from training_cluster.permissions.overrides import MANAGED_TYPES, managed_types
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

IMPORTS = import_samples()
OVERRIDES = [name for name in FEATURES if name.startswith("overrides: ")]
NEW_LUSTRE = ("lustre", "older-lustre", "scratch-lustre")
"""Samples with a Lustre of another type or size, for which StorageStack must not exist yet."""
SAMPLES = [
    *(("", name) for name in (*OVERRIDES, *IMPORTS) if name not in NEW_LUSTRE),
    *((name, name) for name in NEW_LUSTRE),
]
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/reserved"
SECRET = r"arn:aws:secretsmanager:us-east-1:\d+:secret:(\w+)-AbCdEf"
ROLES = ("arn:aws:iam::123456789012:role/head", OPEN_ROLE)


@pytest.fixture(scope="module")
def there(cloud: Cloud) -> dict[str, str]:
    """Resources in the account, by the texts of the samples for them."""
    cloud.cdk.run("deploy", "StorageStack", "--require-approval", "never", output=cloud.folder / "cdk.out")
    settings, ec2 = read_settings({}), cloud.client("ec2")
    ids = known_ids(settings, read_existing_network(settings, cloud.client), cloud.client)
    (near,) = ec2.describe_subnets(SubnetIds=[ids.private_subnet_id])["Subnets"]
    subnets, vpc = [ids.public_subnet_id, ids.private_subnet_id], near["VpcId"]
    for n, zone in enumerate({f"us-east-1{each}" for each in "abc"} - {near["AvailabilityZone"]}):
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{32 + n}.0/24", AvailabilityZone=zone)
        subnets.append(made["Subnet"]["SubnetId"])
        cloud.client("efs").create_mount_target(
            FileSystemId=ids.efs_id, SubnetId=subnets[-1], SecurityGroups=[ids.node_security_group_id]
        )
    groups = [ec2.create_security_group(GroupName=n, Description=n, VpcId=vpc)["GroupId"] for n in "abc"]
    ec2.create_key_pair(KeyName="training", KeyType="ed25519")
    for name in ("team", "mine"):
        ec2.create_placement_group(GroupName=name, Strategy="cluster")
    s3, iam = cloud.client("s3"), cloud.client("iam")
    for name in ("my-bucket", "my-data", "my-results"):
        s3.create_bucket(Bucket=name)
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    place = {"SubnetIds": [ids.private_subnet_id], "SecurityGroupIds": [ids.node_security_group_id]}
    volumes = _volumes(cloud, place)
    disk = ec2.create_volume(Size=8, AvailabilityZone=near["AvailabilityZone"])["VolumeId"]
    # A boundary of the provider, too, which makes roles; without users, as boundaries are.
    bounds = {"Effect": "Allow", "NotAction": ["iam:*User*", "organizations:*"], "Resource": "*"}
    iam.create_policy(
        PolicyName="boundary", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [bounds]})
    )
    trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    made = iam.create_role(RoleName="head", AssumeRolePolicyDocument=document)
    return {
        **{f"subnet-0123456789abcdef{n}": id_ for n, id_ in enumerate(subnets)},
        **{f"sg-0123456789abcdef{n}": id_ for n, id_ in enumerate(groups)},
        "ami-0123456789abcdef0": register_image(cloud.address, "alinux2023"),
        "fs-0123456789abcdef0": ids.efs_id,
        **volumes,  # first: the id of a volume of EBS is a part of theirs
        "vol-0123456789abcdef0": disk,
        # The values that a template leaves open.
        "${AWS_REGION}": "us-east-1",
        "${PUBLIC_SUBNET}": subnets[0],
        "${PRIVATE_SUBNET}": subnets[1],
        "${KEY}": "training",
        "${INSTANCE}": "p4d.24xlarge",
        "${NODES}": "1",
        "${RESERVATION}": "cr-0123456789abcdef0",
        "${VOLUME}": volumes["fsvol-0123456789abcdef0"],
        "${FILE_SYSTEM}": volumes["fs-0123456789abcdef1"],
        **dict.fromkeys(ROLES, made["Role"]["Arn"]),
    }


def _volumes(cloud: Cloud, place: Any) -> dict[str, str]:
    """Make Lustre, a file cache, and volumes of OpenZFS and ONTAP; return the ids by those of samples."""
    fsx = cloud.client("fsx")
    systems = {
        kind: fsx.create_file_system(FileSystemType=kind, StorageCapacity=1200, **place, **more)["FileSystem"]
        for kind, more in (
            ("LUSTRE", {"LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}),
            ("OPENZFS", {}),
            ("ONTAP", {}),
        )
    }
    machine = fsx.create_storage_virtual_machine(FileSystemId=systems["ONTAP"]["FileSystemId"], Name="a")
    ontap = {"StorageVirtualMachineId": machine["StorageVirtualMachine"]["StorageVirtualMachineId"]}
    zfs = {"ParentVolumeId": "fsvol-0123456789abcdef0"}
    made = [
        fsx.create_volume(VolumeType="OPENZFS", Name="a", OpenZFSConfiguration=zfs),
        fsx.create_volume(VolumeType="ONTAP", Name="b", OntapConfiguration=ontap | {"JunctionPath": "/b"}),
    ]
    cache = fsx.create_file_cache(
        FileCacheType="LUSTRE", FileCacheTypeVersion="2.12", StorageCapacity=1200, **place
    )
    return {
        "fs-0123456789abcdef1": systems["LUSTRE"]["FileSystemId"],
        "fc-0123456789abcdef0": cache["FileCache"]["FileCacheId"],
        **{f"fsvol-0123456789abcdef{n}": each["Volume"]["VolumeId"] for n, each in enumerate(made)},
    }


def _reserve(cloud: Cloud, subnet: str, config: Mapping[str, Any], number: int = 0) -> str:
    """Buy the Capacity Block, or make the reservation, of a compute resource; return its id."""
    ec2, queue = cloud.client("ec2"), config["Scheduling"]["SlurmQueues"][0]
    resource = queue["ComputeResources"][number]
    of, count = resource["InstanceType"], int(resource["MaxCount"])
    zone = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"]
    if queue.get("CapacityType") == "CAPACITY_BLOCK":
        wanted = {"InstanceType": of, "InstanceCount": count, "CapacityDurationHours": 24}
        offers = ec2.describe_capacity_block_offerings(**wanted)["CapacityBlockOfferings"]
        offer = next(o["CapacityBlockOfferingId"] for o in offers if o["AvailabilityZone"] == zone)
        made = ec2.purchase_capacity_block(CapacityBlockOfferingId=offer, InstancePlatform="Linux/UNIX")
    else:
        made = ec2.create_capacity_reservation(
            InstanceType=of, InstancePlatform="Linux/UNIX", AvailabilityZone=zone, InstanceCount=count
        )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def _group(cloud: Cloud, name: str, reservation: str) -> str:
    """Make a resource group of a reservation, as EC2's guide does; return its ARN."""
    groups = cloud.client("resource-groups")
    pool = {"Type": "AWS::EC2::CapacityReservationPool"}
    arn: str = groups.create_group(Name=name, Configuration=[pool])["Group"]["GroupArn"]
    member = f"arn:aws:ec2:us-east-1:{ACCOUNT}:capacity-reservation/{reservation}"
    groups.group_resources(Group=arn, ResourceArns=[member])
    return arn


def _flags(cloud: Cloud, sample: str, there: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Import a sample that names what is in the account; return its flags, without those of the network."""
    known, text = dict(there), yaml.safe_dump(IMPORTS[sample].config)
    for name in re.findall(r"\$\{[A-Z_]+\}", text):
        text = text.replace(name, there[name])
    config = yaml.safe_load(text)
    for arn, name in {match[0]: match[1] for match in re.finditer(SECRET, text)}.items():
        made = cloud.client("secretsmanager").create_secret(
            Name=f"{sample}-{name}", SecretString="c2VjcmV0" * 8
        )
        known[arn] = made["ARN"]
    if "cr-0123456789abcdef0" in text:
        known["cr-0123456789abcdef0"] = _reserve(cloud, there["subnet-0123456789abcdef1"], config)
    if GROUP in text:
        subnet, queue = there["subnet-0123456789abcdef1"], config["Scheduling"]["SlurmQueues"][0]
        id_ = _reserve(cloud, subnet, config, 0 if "CapacityReservationTarget" in queue else 1)
        known[GROUP] = _group(cloud, sample, id_)
    files = import_config(yaml.safe_load(_named(text, known)), folder).files
    for file in files:
        file.write_text(_named(file.read_text(), known))
    return {flag: value for flag, value in read_flags(str(files[0])).items() if flag not in NOT_THERE}


def _named(text: str, known: Mapping[str, str]) -> str:
    for name, id_ in known.items():
        text = text.replace(name, id_)
    return text


def _types(cloud: Cloud, stack: str) -> Iterator[str]:
    """Yield the resource types of a stack and its nested stacks."""
    answer = cloud.client("cloudformation").describe_stack_resources(StackName=stack)
    for each in answer["StackResources"]:
        yield each["ResourceType"]
        if each["ResourceType"] == "AWS::CloudFormation::Stack":
            yield from _types(cloud, each["PhysicalResourceId"])


@pytest.mark.parametrize(("cloud", "sample"), SAMPLES, indirect=["cloud"], ids=[name for _, name in SAMPLES])
def test_a_sample_deploys_with_its_rights(
    sample: str, cloud: Cloud, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    there = {} if sample in NEW_LUSTRE else request.getfixturevalue("there")
    given = FEATURES[sample] if sample in FEATURES else _flags(cloud, sample, there, tmp_path / "out")
    flags = [f"{name}={value}" for name, value in given.items()]
    before = len(denied_calls(cloud.address))
    cloud.deploy(*flags)
    assert denied_calls(cloud.address)[before:] == []
    config = read_deployed_cluster(cloud.address, DEFAULT_CLUSTER).config
    assert MANAGED_TYPES & {*_types(cloud, DEFAULT_CLUSTER)} == managed_types(config)
    cloud.destroy(*flags)
