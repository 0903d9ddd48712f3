"""`trainctl preflight` on a local AWS, where each case breaks one thing: it names that, and no other."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ops.preflight.checks import run_checks
from ops.preflight.finding import Finding
from rehearsal.local_aws.process import LocalAws
from tests.slow.own_account import ABROAD, BOOTSTRAP, GROUP, KEY, RSA, TYPE, WORLD, ZONE, OwnAccount, tcp
from training_cluster.rules.context import read_settings

pytestmark = pytest.mark.slow

Step = Callable[[OwnAccount], Any]
NEW = {"family": "p4d"}
"""Flags of a deploy that brings nothing: network and storage are made."""
KMS_KEY = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"
ON_DEMAND_P = "quota: Running On-Demand P instances"
GONE_FSX, GONE_EFS = "fs-0123456789abcdef0", "fs-0fedcba9876543210"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnAccount]:
    folder = tmp_path_factory.mktemp("aws")
    marker = ("TRAINING_CLUSTER_TEST", str(folder))
    with LocalAws(folder=folder, marker=marker, region="us-east-1") as address:
        yield OwnAccount(address)


def bad(own: OwnAccount, flags: dict[str, str]) -> list[Finding]:
    """All that is not well, but that this account's only user is root."""
    found = run_checks(read_settings(flags), own.client)
    return [each for each in found if each.verdict != "ok" and each.check != "credentials"]


def nothing(_: OwnAccount) -> None:
    """Do nothing: the flag alone breaks something, and nothing has to be fixed."""


def fill(count: int, make: Callable[[OwnAccount], Any]) -> Step:
    return lambda own: [make(own) for _ in range(count)]


def flag(**flags: str) -> Callable[[OwnAccount], dict[str, str]]:
    return lambda own: own.flags | flags


def reserved(type_: str = TYPE, **more: Any) -> Callable[[OwnAccount], dict[str, str]]:
    """Flags that name a reservation which is made for it."""
    return lambda own: own.flags | {"capacity": f"reservation:{own.reserve(type_, **more)}"}


def end_all_instances(own: OwnAccount) -> None:
    found = own.ec2.describe_instances()["Reservations"]
    own.ec2.terminate_instances(
        InstanceIds=[each["InstanceId"] for group in found for each in group["Instances"]]
    )


def release_all_addresses(own: OwnAccount) -> None:
    for each in own.ec2.describe_addresses()["Addresses"]:
        if not each.get("AssociationId") and each.get("Domain") == "vpc":
            own.ec2.release_address(AllocationId=each["AllocationId"])


def delete_other_vpcs(own: OwnAccount) -> None:
    for each in own.ec2.describe_vpcs()["Vpcs"]:
        if each["CidrBlock"] == "10.9.0.0/16":
            own.ec2.delete_vpc(VpcId=each["VpcId"])


def test_where_nothing_is_broken_all_is_well(own: OwnAccount) -> None:
    assert bad(own, own.flags) == []
    assert bad(own, NEW) == []


# What is broken, how it is made whole again, the line that says so, what it says to type.
CASES: dict[str, tuple[Step, Step, str, str]] = {
    "the account was never bootstrapped": (
        lambda own: own.client("ssm").delete_parameter(Name=BOOTSTRAP),
        lambda own: own.client("ssm").put_parameter(Name=BOOTSTRAP, Value="21", Type="String"),
        "CDK bootstrap",
        "npx cdk bootstrap aws://",
    ),
    "it was, long ago": (
        lambda own: own.client("ssm").put_parameter(Name=BOOTSTRAP, Value="5", Overwrite=True),
        lambda own: own.client("ssm").put_parameter(Name=BOOTSTRAP, Value="21", Overwrite=True),
        "CDK bootstrap",
        "npx cdk bootstrap aws://",
    ),
    "the VPC has no DNS names": (
        lambda own: own.dns("EnableDnsHostnames", False),
        lambda own: own.dns("EnableDnsHostnames", True),
        "VPC: dns-hostnames",
        "--enable-dns-hostnames",
    ),
    "the VPC resolves no names": (
        lambda own: own.dns("EnableDnsSupport", False),
        lambda own: own.dns("EnableDnsSupport", True),
        "VPC: dns-support",
        "--enable-dns-support",
    ),
    "the public subnet gives no public addresses": (
        lambda own: own.give_public_addresses(False),
        lambda own: own.give_public_addresses(True),
        "public subnet: gives public addresses",
        "--map-public-ip-on-launch",
    ),
    "the public subnet leads nowhere": (
        lambda own: own.unroute(own.public_table),
        lambda own: own.route(own.public_table, GatewayId=own.internet),
        "public subnet: route to the internet",
        "-c public_subnet_id=",
    ),
    "the private subnet leads nowhere": (
        lambda own: own.unroute(own.private_table),
        lambda own: own.route(own.private_table, NatGatewayId=own.nat),
        "private subnet: route to the internet",
        "aws ec2 create-route",
    ),
    "the private subnet is a public one": (
        lambda own: own.reroute(own.private_table, GatewayId=own.internet),
        lambda own: own.reroute(own.private_table, NatGatewayId=own.nat),
        "private subnet: route to the internet",
        "-c private_subnet_id=",
    ),
    "S3 is reached through NAT": (
        lambda own: own.ec2.delete_vpc_endpoints(VpcEndpointIds=[own.s3_endpoint]),
        lambda own: own.make_s3_endpoint(),
        "private subnet: S3 gateway endpoint",
        "aws ec2 create-vpc-endpoint",
    ),
    "nodes cannot reach each other": (
        lambda own: own.ec2.revoke_security_group_ingress(GroupId=own.nodes, IpPermissions=[own.itself]),
        lambda own: own.ec2.authorize_security_group_ingress(GroupId=own.nodes, IpPermissions=[own.itself]),
        "security group: all ingress to itself",
        "authorize-security-group-ingress",
    ),
    "nodes may not call each other": (
        lambda own: own.ec2.revoke_security_group_egress(GroupId=own.nodes, IpPermissions=[own.itself]),
        lambda own: own.ec2.authorize_security_group_egress(GroupId=own.nodes, IpPermissions=[own.itself]),
        "security group: all egress to itself",
        "authorize-security-group-egress",
    ),
    "nodes may not call the world": (
        lambda own: own.ec2.revoke_security_group_egress(GroupId=own.nodes, IpPermissions=[WORLD]),
        lambda own: own.ec2.authorize_security_group_egress(GroupId=own.nodes, IpPermissions=[WORLD]),
        "security group: HTTPS to the internet",
        "FromPort=443",
    ),
    "the bucket keeps no old versions": (
        lambda own: own.version(own.flags["bucket_name"], "Suspended"),
        lambda own: own.version(own.flags["bucket_name"], "Enabled"),
        "bucket: versioning",
        "aws s3api put-bucket-versioning",
    ),
    "the bucket has a key of its own": (
        lambda own: own.encrypt(KMS_KEY),
        lambda own: own.encrypt(None),
        "bucket: encryption",
        "aws s3api put-bucket-encryption",
    ),
    "checkpoints stay on Lustre": (
        lambda own: own.client("fsx").delete_data_repository_association(AssociationId=own.link),
        lambda own: own.make_link(),
        "Lustre: checkpoints go to a bucket",
        "aws fsx create-data-repository-association",
    ),
    "Lustre lets no node in": (
        lambda own: own.ec2.revoke_security_group_ingress(
            GroupId=own.lustre_group, IpPermissions=[tcp(988, 988, own.nodes)]
        ),
        lambda own: own.ec2.authorize_security_group_ingress(
            GroupId=own.lustre_group, IpPermissions=[tcp(988, 988, own.nodes)]
        ),
        "Lustre: open to the nodes on 988, 1018-1023",
        "authorize-security-group-ingress",
    ),
    "EFS is not in the zone": (
        lambda own: own.client("efs").delete_mount_target(MountTargetId=own.mount_target),
        lambda own: own.make_mount_target(),
        "EFS: mount target in use1-az6",
        "aws efs create-mount-target",
    ),
    "EFS lets no node in": (
        lambda own: own.ec2.revoke_security_group_ingress(
            GroupId=own.nfs_group, IpPermissions=[tcp(2049, 2049, own.nodes)]
        ),
        lambda own: own.ec2.authorize_security_group_ingress(
            GroupId=own.nfs_group, IpPermissions=[tcp(2049, 2049, own.nodes)]
        ),
        "EFS: open to the nodes on 2049",
        "authorize-security-group-ingress",
    ),
    "the key pair is gone": (
        lambda own: own.ec2.delete_key_pair(KeyName=KEY),
        lambda own: own.make_key(KEY, "ed25519"),
        f"key_name {KEY}",
        "aws ec2 create-key-pair",
    ),
    "the placement group is gone": (
        lambda own: own.ec2.delete_placement_group(GroupName=GROUP),
        lambda own: own.make_placement_group("cluster"),
        f"placement_group {GROUP}",
        "--strategy cluster",
    ),
    "the placement group spreads": (
        lambda own: own.remake_placement_group("spread"),
        lambda own: own.remake_placement_group("cluster"),
        f"placement_group {GROUP}",
        "--strategy cluster",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_one_thing_that_is_broken_is_named(own: OwnAccount, name: str) -> None:
    break_, mend, check, typed = CASES[name]
    break_(own)
    try:
        found = bad(own, own.flags)
    finally:
        mend(own)
    assert [each.check for each in found] == [check]
    assert typed in found[0].mend


@pytest.mark.parametrize(
    ("flags", "check", "typed"),
    [
        (flag(bucket_name="own-data-nowhere"), "bucket_name own-data-nowhere", "aws s3 ls"),
        (flag(bucket_name=ABROAD), f"bucket_name {ABROAD}", "of a bucket in us-east-1"),
        (flag(fsx_id=GONE_FSX), f"fsx_id {GONE_FSX}", "aws fsx describe-file-systems"),
        (flag(efs_id=GONE_EFS), f"efs_id {GONE_EFS}", "aws efs describe-file-systems"),
        (flag(key_name=RSA), f"key_name {RSA}", "ed25519"),
        (
            flag(permissions_boundary="arn:aws:iam::123456789012:policy/other"),
            "permissions_boundary arn:aws:iam::123456789012:policy/other",
            "-c permissions_boundary=",
        ),
        (
            flag(accounting_secret="arn:aws:secretsmanager:us-east-1:123456789012:secret:other-AbCdEf"),
            "accounting_secret",
            "aws secretsmanager list-secrets",
        ),
        (flag(capacity="reservation:cr-0123456789abcdef0"), "capacity cr-0123456789abcdef0", "cr-..."),
        (reserved("m6i.32xlarge"), "reservation: instance type", "-c instance_type=m6i.32xlarge"),
        (reserved(count=1), "reservation: instances", "-c nodes=1"),
        (reserved(match="open"), "reservation: for named instances only", ""),
    ],
)
def test_a_flag_that_names_the_wrong_thing_is_named(
    own: OwnAccount, flags: Callable[[OwnAccount], dict[str, str]], check: str, typed: str
) -> None:
    given = flags(own)
    found = bad(own, given)
    assert [each.check for each in found] == [check]
    assert typed in found[0].mend


@pytest.mark.parametrize(
    ("use_up", "give_back", "check", "typed"),
    [
        (
            fill(4, lambda own: own.ec2.allocate_address(Domain="vpc")),
            release_all_addresses,
            "quota: EC2-VPC Elastic IPs",
            "--quota-code L-0263D0A3 --desired-value 6",
        ),
        (
            fill(3, lambda own: own.ec2.create_vpc(CidrBlock="10.9.0.0/16")),
            delete_other_vpcs,
            "quota: VPCs per Region",
            "--quota-code L-F678F1CE --desired-value 6",
        ),
        (
            lambda own: own.ec2.run_instances(
                ImageId=own.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"],
                InstanceType=TYPE,
                MinCount=101,
                MaxCount=101,
                Placement={"AvailabilityZone": ZONE},
            ),
            end_all_instances,
            ON_DEMAND_P,
            "--service-code ec2 --quota-code L-417A185B",
        ),
    ],
)
def test_a_quota_that_is_used_up_is_named_with_the_request(
    own: OwnAccount, use_up: Step, give_back: Step, check: str, typed: str
) -> None:
    use_up(own)
    try:
        found = bad(own, NEW)
    finally:
        give_back(own)
    assert [each.check for each in found] == [check]
    assert typed in found[0].mend


def test_an_increase_that_was_typed_is_granted_and_ends_the_warning(own: OwnAccount) -> None:
    many = NEW | {"nodes": "104"}
    (found,) = bad(own, many)
    assert found.check == ON_DEMAND_P
    words = found.mend.split()
    given = dict(zip(words[3::2], words[4::2], strict=True))
    own.client("service-quotas").request_service_quota_increase(
        ServiceCode=given["--service-code"],
        QuotaCode=given["--quota-code"],
        DesiredValue=float(given["--desired-value"]),
    )
    assert bad(own, many) == []
