"""`trainctl preflight`: each check is broken once, in one account, and no other check speaks."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.preflight.checks import run_checks
from ops.preflight.finding import Finding
from tests.unit.ops.own_account import (
    ABROAD,
    BOOTSTRAP,
    BUCKET,
    GROUP,
    KEY,
    RSA,
    TYPE,
    WORLD,
    ZONE,
    OwnAccount,
    tcp,
)
from training_cluster.flags.network import INTERFACE_ENDPOINTS
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER

Step = Callable[[OwnAccount], Any]
Flags = dict[str, str]
ACCOUNT = "123456789012"
NOW, DAY = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
KMS_KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/00000000-0000-0000-0000-000000000000"
POLICY = f"arn:aws:iam::{ACCOUNT}:policy/other"
NO_IAM = "arn:aws:iam::aws:policy/PowerUserAccess"
NO_RESERVATION = "cr-0123456789abcdef0"
GONE_FSX, GONE_EFS = "fs-0123456789abcdef0", "fs-0fedcba9876543210"
OTHER_VPC = "vpc-0ffffffffffffffff"
SPOT, BLOCK, LOGIN = {"capacity": "spot"}, {"capacity": "capacity-block:{}"}, {"login_nodes": "1"}
RESERVED = {"capacity": "reservation:{}"}
IN_A_GROUP = f"arn:aws:resource-groups:us-east-1:{ACCOUNT}:group/mine"
GROUPED = {"family": "g5", "capacity": f"reservation:{IN_A_GROUP}"}
"""Flags; the id of the account's own reservation takes the place of {}."""
MANY = {"nodes": "10", "cpu_queue": "on", "capacity": "ondemand"}
BUDGET = {"budget_usd": "100", "alarm_email": "a@example.com"}
STANDARD, P, P_SPOT = "L-1216C47A", "L-417A185B", "L-7212CCBC"
VPCS, ADDRESSES, NATS, LUSTRE = "L-F678F1CE", "L-0263D0A3", "L-FE5A380F", "L-8F1B9C74"
INTERFACES, GP3 = "L-DF5E4CA3", "L-7A658B76"
ON_DEMAND_P = "quota: Running On-Demand P instances"
ON_DEMAND_STANDARD = "quota: Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
SPOT_P = "quota: All P4, P3 and P2 Spot Instance Requests"
OF_INTERFACES = "quota: Network interfaces per Region"
OF_VOLUMES = "quota: Storage for General Purpose SSD (gp3) volumes, in TiB"
NAT_GATEWAYS = "quota: NAT gateways per Availability Zone"
ZONE_OF_NEW = f"zone with c5.4xlarge, {TYPE}"
EGRESS, NO_ROUTE = "private subnet: route to the internet", "no default route"
OF_LUSTRE, OF_EFS = "Lustre: open to the nodes on 988, 1018-1023", "EFS: open to the nodes on 2049"
EXPORTS = "Lustre: checkpoints go to a bucket"


def findings(own: OwnAccount, flags: Flags) -> list[Finding]:
    flags = {name: value.format(own.reservation) for name, value in flags.items()}
    return run_checks(read_settings(flags), own.client)


def bad(own: OwnAccount, flags: Flags) -> list[Finding]:
    return [each for each in findings(own, flags) if each.verdict != "ok"]


def amended(operation: str, key: str, **members: Any) -> Step:
    return lambda own: own.amend_all(operation, key, **members)


def reservation(**members: Any) -> Step:
    return amended("DescribeCapacityReservations", "CapacityReservations", **members)


def answered(operation: str, answer: Any) -> Step:
    return lambda own: own.account.answers.update({operation: answer})


def reserved_group(*ids: str, **members: Any) -> Step:
    """Answer with a group of these reservations, of which one has these members."""
    arns = [f"arn:aws:ec2:us-east-1:{ACCOUNT}:capacity-reservation/{each}" for each in ids]
    said = {"Resources": [{"Identifier": {"ResourceArn": each}} for each in arns]}
    found = {"CapacityReservationId": NO_RESERVATION, "InstanceType": "g5.48xlarge", "State": "active"}
    counts = {"TotalInstanceCount": 4, "AvailableInstanceCount": 0, "AvailabilityZoneId": "use1-az6"}
    one = {"CapacityReservations": [found | counts | members]}
    return all_of(answered("ListGroupResources", said), answered("DescribeCapacityReservations", one))


def block(**members: Any) -> Step:
    return reservation(ReservationType="capacity-block", **members)


def refused(operation: str, code: str, message: str = "") -> Step:
    return lambda own: own.refuse(operation, code, message)


def quota(code: str, value: float) -> Step:
    return lambda own: own.quota(code, value)


def subnet(name: str, **members: Any) -> Step:
    def change(own: OwnAccount) -> None:
        id_ = getattr(own.network, name)
        own.amend(
            "DescribeSubnets",
            lambda said: [each.update(members) for each in said["Subnets"] if each["SubnetId"] == id_],
        )

    return change


def group(name: str, direction: str, rule: Callable[[OwnAccount], dict[str, Any]]) -> Step:
    """Remove a rule of a security group."""
    return lambda own: own.close(getattr(own, name), direction, rule(own))


def itself(own: OwnAccount) -> dict[str, Any]:
    return own.itself


def nodes_on(first: int, last: int) -> Callable[[OwnAccount], dict[str, Any]]:
    return lambda own: tcp(first, last, own.nodes)


def offers(type_: str, *, without: tuple[str, ...]) -> Step:
    def change(said: dict[str, Any]) -> None:
        said["InstanceTypeOfferings"] = [
            each
            for each in said["InstanceTypeOfferings"]
            if each["InstanceType"] != type_ or each["Location"] not in without
        ]

    return lambda own: own.amend("DescribeInstanceTypeOfferings", change)


def endpoints(**zones: str) -> Step:
    """Answer with the services of endpoints, of which moto takes no filters."""
    answer = {
        "ServiceDetails": [
            {"ServiceName": f"com.amazonaws.us-east-1.{name}", "AvailabilityZones": [zones.get(name, zone)]}
            for name in INTERFACE_ENDPOINTS
            for zone in ("us-east-1a", "us-east-1b")
        ]
    }
    return lambda own: own.account.answers.update(DescribeVpcEndpointServices=answer)


def key_of_ones_own(own: OwnAccount) -> None:
    own.account.answers["GetEbsDefaultKmsKeyId"] = {"KmsKeyId": KMS_KEY}
    metadata = {"KeyId": KMS_KEY, "Arn": KMS_KEY, "AWSAccountId": ACCOUNT, "KeyManager": "CUSTOMER"}
    own.account.answers["DescribeKey"] = {"KeyMetadata": {**metadata, "Enabled": True, "KeyState": "Enabled"}}
    own.account.answers["GetKeyPolicy"] = {"Policy": json.dumps({"Statement": []})}


def bootstrap(version: str = "") -> Step:
    """Replace the version of the CDK's bootstrap, or remove it."""

    def change(own: OwnAccount) -> None:
        ssm = own.client("ssm")
        own.later(ssm.put_parameter, Name=BOOTSTRAP, Value="21", Type="String", Overwrite=True)
        if version:
            ssm.put_parameter(Name=BOOTSTRAP, Value=version, Overwrite=True)
        else:
            ssm.delete_parameter(Name=BOOTSTRAP)

    return change


def encrypted(key: str = "") -> Step:
    default = {"SSEAlgorithm": "aws:kms", **({"KMSMasterKeyID": key} if key else {})}
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": default}]}

    def change(own: OwnAccount) -> None:
        own.client("s3").put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration=rules)
        own.later(own.client("s3").delete_bucket_encryption, Bucket=BUCKET)

    return change


def unversioned(own: OwnAccount) -> None:
    for status, do in (("Enabled", own.later), ("Suspended", lambda put, **said: put(**said))):
        do(own.client("s3").put_bucket_versioning, Bucket=BUCKET, VersioningConfiguration={"Status": status})


def without(service: str, operation: str, remake: Callable[[OwnAccount], Any], **names: str) -> Step:
    """Delete something; `names` are arguments and the account's attribute, or a text, for each."""

    def change(own: OwnAccount) -> None:
        given = {key: getattr(own, name, name) for key, name in names.items()}
        getattr(own.client(service), operation)(**given)
        own.later(lambda: remake(own))

    return change


WITHOUT_GROUP = without(
    "ec2", "delete_placement_group", lambda own: own.make_placement_group("cluster"), GroupName=GROUP
)


def spreading(own: OwnAccount) -> None:
    WITHOUT_GROUP(own)
    own.make_placement_group("spread")
    own.later(own.ec2.delete_placement_group, GroupName=GROUP)


def volume(own: OwnAccount) -> None:
    made = own.ec2.create_volume(Size=10240, VolumeType="gp3", AvailabilityZone=ZONE)
    own.later(own.ec2.delete_volume, VolumeId=made["VolumeId"])


def imports_only(own: OwnAccount) -> None:
    policy = {"AutoImportPolicy": {"Events": ["NEW"]}}
    amended("DescribeDataRepositoryAssociations", "Associations", S3=policy)(own)


def foreign_key(own: OwnAccount) -> None:
    own.make_key(f"{CLUSTER}-key", "ed25519")
    own.later(own.ec2.delete_key_pair, KeyName=f"{CLUSTER}-key")


def nothing(_: OwnAccount) -> None:
    """Break nothing: the flag alone is wrong."""


def all_of(*steps: Step) -> Step:
    return lambda own: [step(own) for step in steps]


# What is broken, flags of a deploy that brings nothing, the check, what is found or what to type.
NEW: tuple[tuple[Step, Flags, str, str], ...] = (
    (
        amended("DescribeRegions", "Regions", OptInStatus="not-opted-in"),
        {},
        "region us-east-1",
        "aws account enable-region",
    ),
    (bootstrap(), {}, "CDK bootstrap", f"npx cdk bootstrap aws://{ACCOUNT}/us-east-1"),
    (bootstrap("5"), {}, "CDK bootstrap", "npx cdk bootstrap"),
    # The account's own reservation is idle, so its two nodes count, too.
    (
        quota(P, 2 * 192 - 1),
        {},
        ON_DEMAND_P,
        "--service-code ec2 --quota-code L-417A185B --desired-value 384",
    ),
    (all_of(quota(P, 192), reservation(AvailableInstanceCount=1)), {}, ON_DEMAND_P, "--desired-value 288"),
    (all_of(quota(P, 384), lambda own: own.run()), {}, ON_DEMAND_P, "--desired-value 480"),
    (quota(P_SPOT, 96), SPOT, SPOT_P, "--quota-code L-7212CCBC"),
    (
        all_of(
            quota(P_SPOT, 192),
            lambda own: own.run("p3dn.24xlarge", InstanceMarketOptions={"MarketType": "spot"}),
        ),
        *(SPOT, SPOT_P, "--desired-value 288"),
    ),
    (quota(STANDARD, 5), {}, ON_DEMAND_STANDARD, "--desired-value 16"),
    (quota(STANDARD, 16 + 4 - 1), LOGIN, ON_DEMAND_STANDARD, "value 20"),
    (quota(STANDARD, 16 + 4 * 64 - 1), {"cpu_queue": "on"}, ON_DEMAND_STANDARD, "--desired-value 272"),
    # The head node, 2 nodes with 4 interfaces each, and 3 of NAT, Lustre and EFS.
    (
        quota(INTERFACES, 11),
        {},
        OF_INTERFACES,
        "--service-code vpc --quota-code L-DF5E4CA3 --desired-value 12",
    ),
    # 128 GiB of the head node, and 2 x 256.
    (quota(GP3, 0.6), {}, OF_VOLUMES, "--service-code ebs --quota-code L-7A658B76 --desired-value 0.62"),
    (all_of(volume, quota(GP3, 10.5)), *({}, OF_VOLUMES, "--desired-value 10.62")),
    (
        quota(VPCS, 2),
        {},
        "quota: VPCs per Region",
        "--service-code vpc --quota-code L-F678F1CE --desired-value 3",
    ),
    (quota(ADDRESSES, 1), {}, "quota: EC2-VPC Elastic IPs", "--quota-code L-0263D0A3 --desired-value 2"),
    (quota(NATS, 1), {"zone": "use1-az6"}, NAT_GATEWAYS, "--quota-code L-FE5A380F --desired-value 2"),
    (
        quota(LUSTRE, 2399),
        *(
            {},
            "quota: Lustre Persistent_2 storage capacity",
            "--service-code fsx --quota-code L-8F1B9C74 --desired-value 2400",
        ),
    ),
    (
        offers(TYPE, without=tuple(f"use1-az{number}" for number in range(1, 7))),
        *({}, ZONE_OF_NEW, "another region"),
    ),
    (offers(TYPE, without=("use1-az1",)), {"zone": "use1-az1"}, ZONE_OF_NEW, "-c zone=use1-az"),
    (nothing, {"capacity": f"reservation:{NO_RESERVATION}"}, f"capacity {NO_RESERVATION}", "cr-..."),
    (reservation(State="cancelled"), RESERVED, "capacity {}", "cr-..."),
    (block(State="expired", EndDate=NOW - DAY), BLOCK, "capacity {}", "-c capacity="),
    (
        reservation(InstanceType="p4de.24xlarge"),
        RESERVED,
        "reservation: instance type",
        "-c instance_type=p4de.24xlarge",
    ),
    (reservation(TotalInstanceCount=1), RESERVED, "reservation: instances", "-c nodes=1"),
    (reservation(Tenancy="dedicated"), RESERVED, "reservation: tenancy and platform", "default tenancy"),
    (
        reservation(InstancePlatform="Windows"),
        RESERVED,
        "reservation: tenancy and platform",
        "for Linux/UNIX",
    ),
    (block(), RESERVED, "reservation: kind", "-c capacity=capacity-block:{}"),
    (offers(TYPE, without=("use1-az6",)), RESERVED, ZONE_OF_NEW, "another reservation"),
    *(
        (step, GROUPED, f"capacity {IN_A_GROUP}", "")
        for step in (
            refused("ListGroupResources", "NotFoundException"),
            reserved_group(),
            reserved_group(NO_RESERVATION, State="expired"),
            reserved_group(NO_RESERVATION, InstanceType="p4d.24xlarge"),
        )
    ),
    (
        endpoints(sts="us-east-1z"),
        *({"endpoints": "private"}, "endpoints=private in us-east-1", "-c endpoints=none"),
    ),
    (nothing, {"node_policies": POLICY}, f"node_policies {POLICY}", "-c node_policies=..."),
    (nothing, {"write_buckets": "our-results/runs"}, "bucket our-results", "aws s3 ls"),
    (
        refused("GetRole", "NoSuchEntity"),
        *(SPOT, "capacity=spot: role AWSServiceRoleForEC2Spot"),
        "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
    (
        key_of_ones_own,
        {},
        "key of the root volumes: policy",
        '"kms:ViaService": ["ec2.us-east-1.amazonaws.com"]',
    ),
    (
        lambda own: own.amend("DescribeImages", lambda said: said["Images"].clear()),
        {},
        "official image",
        "-c os=...",
    ),
    (
        lambda own: own.deploy("TrainingCluster-Network", description="Theirs", VpcId=OTHER_VPC),
        *({}, "stack TrainingCluster-Network", "another region or account"),
    ),
    (
        lambda own: own.deploy(CLUSTER, description="Another app's", TopicArn="arn"),
        *({}, f"names of the cluster {CLUSTER}", f"-c cluster_name={CLUSTER}-2"),
    ),
    (foreign_key, {}, f"names of the cluster {CLUSTER}", f"-c key_name={CLUSTER}-key"),
    (nothing, {"key_name": "none", "os": "alinux2023"}, "key_name none", "aws ec2 create-key-pair"),
)


@pytest.mark.parametrize(("break_", "flags", "check", "typed"), NEW)
def test_broken_account_is_one_problem(
    own: OwnAccount, break_: Step, flags: Flags, check: str, typed: str
) -> None:
    break_(own)
    (found,) = bad(own, {"family": "p4d", **flags})
    assert found.check.startswith(check.format(own.reservation))
    assert found.verdict == "problem"
    assert (typed.format(own.reservation) if "{}" in typed else typed) in f"{found.found}\n{found.mend}"


# Likewise for a deploy that brings network and storage.
OWN: tuple[tuple[Step, Flags, str, str], ...] = (
    (lambda own: own.without_dns("EnableDnsHostnames"), {}, "VPC: dns-hostnames", "--enable-dns-hostnames"),
    (lambda own: own.without_dns("EnableDnsSupport"), {}, "VPC: dns-support", "--enable-dns-support"),
    (
        lambda own: own.give_no_public_addresses(),
        {},
        "public subnet: gives public addresses",
        "--map-public-ip-on-launch",
    ),
    (
        lambda own: own.reroute(own.public_table, NatGatewayId=own.nat),
        *({}, "public subnet: route to the internet", "internet gateway; or none: -c public_access=off"),
    ),
    (lambda own: own.reroute(own.private_table), {}, EGRESS, "aws ec2 create-route"),
    (lambda own: own.reroute(own.private_table, GatewayId=own.internet), {}, EGRESS, "-c private_subnet_id="),
    (
        lambda own: own.amend(
            "DescribeRouteTables",
            lambda said: [
                r.update(State="blackhole")
                for t in said["RouteTables"]
                for r in t["Routes"]
                if "NatGatewayId" in r
            ],
        ),
        *({}, EGRESS, "create-route"),
    ),
    (subnet("public", VpcId=OTHER_VPC), {}, "public_subnet_id subnet-", "-c public_subnet_id=..."),
    (subnet("private", OwnerId="210987654321"), {}, "private_subnet_id: owner", "no nodes in a shared one"),
    (
        subnet("public", AvailabilityZoneId="use1-az1"),
        {},
        "both subnets in one zone",
        "public subnet in use1-az6",
    ),
    (
        subnet("private", AvailableIpAddressCount=77),
        *(MANY, "private subnet: free addresses", "77, of which a full cluster takes 78"),
    ),
    (lambda own: own.account.answers.update(DescribeVpcs={"Vpcs": []}), {}, "VPC", "-c vpc_id="),
    (subnet("private", AvailableIpAddressCount=65), {}, "private subnet: free addresses", "-c nodes=..."),
    (offers(TYPE, without=("use1-az6",)), {}, f"{TYPE} in use1-az6", "in a zone that has all types"),
    (
        group("nodes", "ingress", itself),
        {},
        "security group: all ingress to itself",
        "security-group-ingress",
    ),
    (group("nodes", "egress", itself), {}, "security group: all egress to itself", "security-group-egress"),
    (
        amended("DescribeSecurityGroups", "SecurityGroups", VpcId=OTHER_VPC),
        *({}, "security_group_id sg-", "-c security_group_id=..."),
    ),
    (
        reservation(AvailabilityZoneId="use1-az1", AvailabilityZone="us-east-1b"),
        *({}, "reservation: zone", "-c private_subnet_id=..."),
    ),
    (nothing, {"bucket_name": "own-data-nowhere"}, "bucket_name own-data-nowhere", "aws s3 ls"),
    (refused("HeadBucket", "403"), {}, f"bucket_name {BUCKET}", "aws s3 ls"),
    (nothing, {"bucket_name": ABROAD}, f"bucket_name {ABROAD}", "of a bucket in us-east-1"),
    (nothing, {"fsx_id": GONE_FSX}, f"fsx_id {GONE_FSX}", "aws fsx describe-file-systems"),
    (
        amended("DescribeFileSystems", "FileSystems", FileSystemType="WINDOWS"),
        {},
        "fsx_id fs-",
        "-c fsx_id=...",
    ),
    (
        amended("DescribeFileSystems", "FileSystems", Lifecycle="FAILED"),
        {},
        "fsx_id fs-",
        "until it is AVAILABLE",
    ),
    (
        amended("DescribeFileSystems", "FileSystems", VpcId=OTHER_VPC),
        {},
        "Lustre: in the nodes' VPC",
        f"-c vpc_id={OTHER_VPC}",
    ),
    (group("lustre_group", "ingress", nodes_on(988, 988)), {}, OF_LUSTRE, "authorize-security-group-ingress"),
    (group("lustre_group", "egress", nodes_on(1018, 1023)), {}, OF_LUSTRE, "authorize-security-group-egress"),
    (nothing, {"efs_id": GONE_EFS}, f"efs_id {GONE_EFS}", "aws efs describe-file-systems"),
    (
        without("efs", "delete_mount_target", OwnAccount.make_mount_target, MountTargetId="mount_target"),
        *({}, "EFS: mount target in use1-az6", "aws efs create-mount-target"),
    ),
    (group("nfs_group", "ingress", nodes_on(2049, 2049)), {}, OF_EFS, "authorize-security-group-ingress"),
    (
        without("ec2", "delete_key_pair", lambda own: own.make_key(KEY, "ed25519"), KeyName=KEY),
        {},
        f"key_name {KEY}",
        "aws ec2 create-key-pair",
    ),
    (nothing, {"key_name": RSA}, f"key_name {RSA}", "ed25519"),
    (WITHOUT_GROUP, {}, f"placement_group {GROUP}", "--strategy cluster"),
    (nothing, {"permissions_boundary": POLICY}, f"permissions_boundary {POLICY}", "-c permissions_boundary="),
    (nothing, {"permissions_boundary": NO_IAM}, f"permissions_boundary {NO_IAM}: rights", "iam:CreateRole, "),
    (
        nothing,
        {"accounting_secret": f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:other-AbCdEf"},
        *("accounting_secret", "aws secretsmanager list-secrets"),
    ),
)


@pytest.mark.parametrize(("break_", "flags", "check", "typed"), OWN)
def test_broken_own_resource_is_one_problem(
    own: OwnAccount, break_: Step, flags: Flags, check: str, typed: str
) -> None:
    break_(own)
    (found,) = bad(own, own.flags | flags)
    assert found.check.startswith(check)
    assert found.verdict == "problem"
    assert typed in f"{found.found}\n{found.mend}"


# What is not known or works worse: whether the deploy brings its own, the check, what is found and to type.
WARNINGS: tuple[tuple[Step, bool, Flags, str, str], ...] = (
    (
        without("ec2", "delete_vpc_endpoints", OwnAccount.make_s3_endpoint, VpcEndpointIds="s3_endpoints"),
        True,
        {},
        "private subnet: S3 gateway endpoint",
        "create-vpc-endpoint",
    ),
    (
        lambda own: own.amend(
            "DescribeRouteTables",
            lambda said: [
                route.update(TransitGatewayId="tgw-1")
                for table in said["RouteTables"]
                for route in table["Routes"]
                if route.pop("NatGatewayId", "")
            ],
        ),
        *(True, {}, EGRESS, "curl"),
    ),
    (
        group("nodes", "egress", lambda _: WORLD),
        True,
        {},
        "security group: HTTPS to the internet",
        "FromPort=443",
    ),
    (spreading, True, {}, f"placement_group {GROUP}", "--strategy cluster"),
    (encrypted(KMS_KEY), True, {}, "bucket: encryption", f"with the key {KMS_KEY}"),
    (unversioned, True, {}, "bucket: versioning", "aws s3api put-bucket-versioning"),
    (
        without("fsx", "delete_data_repository_association", OwnAccount.make_link, AssociationId="link"),
        *(
            True,
            {},
            EXPORTS,
            f"--file-system-path /checkpoints --data-repository-path s3://{BUCKET}/checkpoints/ ",
        ),
    ),
    (imports_only, True, {}, EXPORTS, "no association exports"),
    (
        amended("DescribeDataRepositoryAssociations", "Associations", FileSystemPath="/other"),
        True,
        {},
        EXPORTS,
        "/other",
    ),
    (
        amended("DescribeFileSystems", "FileSystems", FileSystemTypeVersion="2.10"),
        True,
        {},
        "Lustre: version",
        "--file-system-type-version 2.15",
    ),
    (
        lambda own: own.account.answers["GetCallerIdentity"].update(Arn=f"arn:aws:iam::{ACCOUNT}:root"),
        False,
        {},
        "credentials",
        "the root user",
    ),
    (
        reservation(InstanceMatchCriteria="open"),
        False,
        RESERVED,
        "reservation: for named instances only",
        "open: any",
    ),
    (reserved_group(NO_RESERVATION, TotalInstanceCount=1), False, GROUPED, f"capacity {IN_A_GROUP}", "1"),
    (
        block(State="scheduled", StartDate=NOW + DAY, TotalInstanceCount=0),
        *(False, BLOCK, "capacity cr-", f"scheduled: starts {NOW + DAY:%Y-%m-%d}"),
    ),
    (
        refused(
            "DescribeAddresses", "UnauthorizedOperation", "You are not authorized to perform this operation."
        ),
        *(
            False,
            {},
            "quota of elastic IP addresses",
            "not checked: these credentials lack DescribeAddresses",
        ),
    ),
    (
        refused("DescribeImages", "InternalError", "AWS has trouble"),
        *(
            False,
            {},
            "image",
            "not checked: An error occurred (InternalError) when calling the DescribeImages operation",
        ),
    ),
    (
        refused("DescribeBudgets", "AccessDeniedException", "perform: budgets:ViewBudget on"),
        *(False, BUDGET, "budget_usd", "not checked: these credentials lack budgets:ViewBudget"),
    ),
    (
        refused("DescribeStacks", "AccessDenied", "not authorized to perform: cloudformation:DescribeStacks"),
        *(False, {}, "stacks and network, assumed to be missing"),
        "not checked: these credentials lack cloudformation:DescribeStacks",
    ),
    (nothing, False, {"key_name": RSA, "os": "alinux2023"}, f"key_name {RSA}", "ed25519"),
)


@pytest.mark.parametrize(("break_", "brings", "flags", "check", "told"), WARNINGS)
def test_what_works_worse_is_one_warning(
    own: OwnAccount, break_: Step, *, brings: bool, flags: Flags, check: str, told: str
) -> None:
    break_(own)
    (found,) = bad(own, (own.flags if brings else {"family": "p4d"}) | flags)
    assert found.check.startswith(check)
    assert found.verdict == "warning"
    assert told in f"{found.found}\n{found.mend}"


def main_table_only(own: OwnAccount) -> None:
    """Answer as if the private subnet's route table were the main one."""

    def tables(subnet: str) -> Any:
        filters = [{"Name": "association.subnet-id", "Values": [subnet]}]
        return {"RouteTables": own.ec2.describe_route_tables(Filters=filters)["RouteTables"]}

    public, private = tables(own.network.public), tables(own.network.private)
    by_subnet = {own.network.public: public, own.network.private: {"RouteTables": []}}
    own.account.answers["DescribeRouteTables"] = lambda asked: by_subnet.get(
        asked["Filters"][0]["Values"][0], private
    )


def lustre_open_to(address: str) -> Step:
    """Open Lustre's group by an address range and a prefix list, and not by the nodes' group."""
    into = [{"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535, "IpRanges": [{"CidrIp": address}]}]
    out = [{**tcp(988, 1023, ""), "UserIdGroupPairs": [], "PrefixListIds": [{"PrefixListId": "pl-1"}]}]

    def change(own: OwnAccount) -> None:
        def rules(said: dict[str, Any]) -> None:
            for each in said["SecurityGroups"]:
                if each["GroupId"] == own.lustre_group:
                    each |= {"IpPermissions": into, "IpPermissionsEgress": out}

        own.amend("DescribeSecurityGroups", rules)

    return change


NO_QUOTA = refused("GetServiceQuota", "NoSuchResourceException")
BLOCK_RUNS = {
    "Reservations": [{"Instances": [{"InstanceType": TYPE, "InstanceLifecycle": "capacity-block"}]}]
}

# What is as it should be: whether the deploy brings its own, and flags.
GOOD: tuple[tuple[Step, bool, Flags], ...] = (
    (nothing, False, {}),
    (nothing, False, SPOT),
    (nothing, False, RESERVED),
    (reserved_group(NO_RESERVATION), False, GROUPED),
    (nothing, False, {"endpoints": "private", **LOGIN, **BUDGET}),
    (nothing, False, {"fsx_type": "scratch2"}),
    (nothing, False, {"write_buckets": f"{BUCKET}/runs"}),
    (all_of(quota(P, 0), reservation(AvailableInstanceCount=0)), False, RESERVED),
    (all_of(quota(P, 0), block(EndDate=NOW + DAY), answered("DescribeInstances", BLOCK_RUNS)), False, BLOCK),
    (NO_QUOTA, False, {}),  # never changed: AWS's default
    (nothing, True, {}),
    (encrypted(), True, {}),
    (encrypted("arn:aws:kms:us-east-1:1:alias/aws/s3"), True, {}),
    (amended("DescribeDataRepositoryAssociations", "Associations", FileSystemPath="/"), True, {}),
    (lustre_open_to("10.0.0.0/16"), True, {}),
    (subnet("private", AvailableIpAddressCount=10 + 4 + 64), True, MANY),
    (main_table_only, True, {}),
)


@pytest.mark.parametrize(("step", "brings", "flags"), GOOD)
def test_good_account_has_nothing_to_mend(own: OwnAccount, step: Step, *, brings: bool, flags: Flags) -> None:
    endpoints()(own)
    own.account.answers["DescribeBudgets"] = {"Budgets": []}
    step(own)
    own.account.asked.clear()
    found = findings(own, (own.flags if brings else {"family": "p4d"}) | flags)
    assert [each for each in found if each.verdict != "ok" or each.mend] == []
    common = {"credentials", "CDK bootstrap", "official image", ON_DEMAND_STANDARD}
    brought = {OF_LUSTRE, OF_EFS, EGRESS, "both subnets in one zone", f"{TYPE} in use1-az6"}
    assert common | (brought if brings else set()) <= {each.check for each in found}
    assert own.is_untouched


def test_running_cluster_counts_once(own: OwnAccount) -> None:
    tags = [{"Key": "parallelcluster:cluster-name", "Value": CLUSTER}]
    own.run(count=2, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])
    own.quota(P, 384)
    assert bad(own, {"family": "p4d"}) == []
    assert [each.check for each in bad(own, {"family": "p4d", "cluster_name": "another"})] == [ON_DEMAND_P]


@pytest.mark.parametrize("public", ["private", "public", None])
def test_without_public_access_private_subnet_suffices(own: OwnAccount, public: str | None) -> None:
    own.give_no_public_addresses()
    own.reroute(own.public_table)
    flags = {key: value for key, value in own.flags.items() if key != "public_subnet_id"}
    given = {"public_subnet_id": getattr(own.network, public)} if public else {}
    assert bad(own, {**flags, "public_access": "off", **given}) == []


def test_policies_and_buckets_of_one_node(own: OwnAccount, tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    rights = f"AdditionalIamPolicies: [{{Policy: '{POLICY}'}}], S3Access: [{{BucketName: secrets}}]"
    file.write_text(f"HeadNode: {{Iam: {{{rights}}}}}")
    found = bad(own, {"family": "p4d", "overrides": str(file)})
    assert [each.check for each in found] == [f"node_policies {POLICY}", "bucket secrets"]


def test_granted_increase_ends_the_problem(own: OwnAccount) -> None:
    many = {"family": "p4d", "nodes": "104"}
    (found,) = bad(own, many)
    words = found.mend.split()
    given = dict(zip(words[3::2], words[4::2], strict=True))
    own.client("service-quotas").request_service_quota_increase(
        ServiceCode=given["--service-code"],
        QuotaCode=given["--quota-code"],
        DesiredValue=float(given["--desired-value"]),
    )
    assert bad(own, many) == []
