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
NO_SECRET = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:other-AbCdEf"
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
INTERFACES, GP3, SCRATCH = "L-DF5E4CA3", "L-7A658B76", "L-AD2FC696"
ON_DEMAND_P = "quota: Running On-Demand P instances"
ON_DEMAND_STANDARD = "quota: Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
SPOT_P = "quota: All P4, P3 and P2 Spot Instance Requests"
OF_INTERFACES = "quota: Network interfaces per Region"
OF_VOLUMES = "quota: Storage for General Purpose SSD (gp3) volumes, in TiB"
TENANCY, FREE = "reservation: tenancy and platform", "private subnet: free addresses"
SPOT_ROLE = "AWSServiceRoleForEC2Spot"
ON_SPOT: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}
ZONE_OF_NEW = f"zone with c5.4xlarge, {TYPE}"
EGRESS = "private subnet: route to the internet"
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


def reserved_group(*ids: str, of: str = "AWS::EC2::CapacityReservationPool", **members: Any) -> Step:
    """Answer with a group of these reservations, of which one has these members."""
    arns = [f"arn:aws:ec2:us-east-1:{ACCOUNT}:capacity-reservation/{each}" for each in ids]
    said = {"Resources": [{"Identifier": {"ResourceArn": each}} for each in arns]}
    found = {"CapacityReservationId": NO_RESERVATION, "InstanceType": "g5.48xlarge", "State": "active"}
    counts = {"TotalInstanceCount": 4, "AvailableInstanceCount": 0, "AvailabilityZoneId": "use1-az6"}
    one = {"CapacityReservations": [found | counts | members]}
    return all_of(
        answered("ListGroupResources", said),
        answered("DescribeCapacityReservations", one),
        answered("GetGroupConfiguration", {"GroupConfiguration": {"Configuration": [{"Type": of}]}}),
    )


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
    """Answer with the services of endpoints in two zones."""
    answer = {
        "ServiceDetails": [
            {"ServiceName": f"com.amazonaws.us-east-1.{name}", "AvailabilityZones": [zones.get(name, zone)]}
            for name in (*INTERFACE_ENDPOINTS, "fsx", "elasticfilesystem")
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


def links(**members: Any) -> Step:
    return amended("DescribeDataRepositoryAssociations", "Associations", **members)


def systems(**members: Any) -> Step:
    return amended("DescribeFileSystems", "FileSystems", **members)


def nat_routes(**members: Any) -> Step:
    """Let the routes to the NAT gateway have these members instead."""

    def change(said: dict[str, Any]) -> None:
        for route in (each for table in said["RouteTables"] for each in table["Routes"]):
            if route.pop("NatGatewayId", ""):
                route.update(members)

    return lambda own: own.amend("DescribeRouteTables", change)


def foreign_key(own: OwnAccount) -> None:
    own.make_key(f"{CLUSTER}-key", "ed25519")
    own.later(own.ec2.delete_key_pair, KeyName=f"{CLUSTER}-key")


def without_images(own: OwnAccount) -> None:
    own.amend("DescribeImages", lambda said: said["Images"].clear())


def nothing(_: OwnAccount) -> None:
    """Break nothing: the flag alone is wrong."""


def all_of(*steps: Step) -> Step:
    return lambda own: [step(own) for step in steps]


Case = tuple[Step, Flags, str, str]


def case(break_: Step, check: str, told: str, **flags: str) -> Case:
    """Return a fault of the account, the check that finds it, and a part of its finding or mend."""
    return break_, flags, check, told


def low(
    code: str, value: float, check: str, desired: str, *also: Step, of: str = "ec2", **flags: str
) -> Case:
    """A quota that is too low, and what to ask for."""
    told = f"--service-code {of} --quota-code {code} --desired-value {desired}"
    return case(all_of(*also, quota(code, value)), check, told, **flags)


# Of a deploy that brings nothing. The account's own reservation is idle, so its two nodes count, too.
NEW = (
    case(amended("DescribeRegions", "Regions", OptInStatus="not-opted-in"), "region us-", "enable-region"),
    case(bootstrap(), "CDK bootstrap", f"npx cdk bootstrap aws://{ACCOUNT}/us-east-1"),
    case(bootstrap("5"), "CDK bootstrap", "npx cdk bootstrap"),
    low(P, 2 * 192 - 1, ON_DEMAND_P, "384"),
    low(P, 192, ON_DEMAND_P, "288", reservation(AvailableInstanceCount=1)),
    low(P, 384, ON_DEMAND_P, "480", lambda own: own.run()),
    low(P_SPOT, 96, SPOT_P, "192", **SPOT),
    low(P_SPOT, 192, SPOT_P, "288", lambda own: own.run("p3dn.24xlarge", **ON_SPOT), **SPOT),
    low(STANDARD, 5, ON_DEMAND_STANDARD, "16"),
    low(STANDARD, 16 + 4 - 1, ON_DEMAND_STANDARD, "20", **LOGIN),
    low(STANDARD, 16 + 4 * 64 - 1, ON_DEMAND_STANDARD, "272", cpu_queue="on"),
    # The head node, 2 nodes with 4 interfaces each, and 3 of NAT, Lustre and EFS.
    low(INTERFACES, 11, OF_INTERFACES, "12", of="vpc"),
    # 128 GiB of the head node, and 2 x 256.
    low(GP3, 0.6, OF_VOLUMES, "0.62", of="ebs"),
    low(GP3, 10.5, OF_VOLUMES, "10.62", volume, of="ebs"),
    low(VPCS, 2, "quota: VPCs per Region", "3", of="vpc"),
    low(ADDRESSES, 1, "quota: EC2-VPC Elastic IPs", "2"),
    low(NATS, 1, "quota: NAT gateways per Availability Zone", "2", of="vpc", zone="use1-az6"),
    low(LUSTRE, 2399, "quota: Lustre Persistent_2 storage capacity", "2400", of="fsx"),
    case(offers(TYPE, without=tuple(f"use1-az{n}" for n in range(1, 7))), ZONE_OF_NEW, "another region"),
    case(offers(TYPE, without=("use1-az1",)), ZONE_OF_NEW, "-c zone=use1-az", zone="use1-az1"),
    case(nothing, f"capacity {NO_RESERVATION}", "cr-...", capacity=f"reservation:{NO_RESERVATION}"),
    case(reservation(State="cancelled"), "capacity {}", "cr-...", **RESERVED),
    case(block(State="expired", EndDate=NOW - DAY), "capacity {}", "-c capacity=", **BLOCK),
    case(reservation(InstanceType="p4de.24xlarge"), "reservation: instance type", "p4de.24", **RESERVED),
    case(reservation(TotalInstanceCount=1), "reservation: instances", "-c nodes=1", **RESERVED),
    case(reservation(Tenancy="dedicated"), TENANCY, "default tenancy", **RESERVED),
    case(reservation(InstancePlatform="Windows"), TENANCY, "for Linux/UNIX", **RESERVED),
    case(block(), "reservation: kind", "-c capacity=capacity-block:{}", **RESERVED),
    case(offers(TYPE, without=("use1-az6",)), ZONE_OF_NEW, "another reservation", **RESERVED),
    *(
        case(step, f"capacity {IN_A_GROUP}", "", **GROUPED)
        for step in (
            refused("ListGroupResources", "NotFoundException"),
            reserved_group(),
            reserved_group(NO_RESERVATION, State="expired"),
            reserved_group(NO_RESERVATION, InstanceType="p4d.24xlarge"),
        )
    ),
    *(
        case(step, f"capacity {IN_A_GROUP}", "create-group", **GROUPED)
        for step in (
            reserved_group(NO_RESERVATION, of="AWS::ResourceGroups::Generic"),
            all_of(reserved_group(NO_RESERVATION), refused("GetGroupConfiguration", "BadRequestException")),
        )
    ),
    case(endpoints(sts="us-east-1z"), "endpoints=private in us-", "-c endpoints=none", endpoints="private"),
    case(nothing, f"node_policies {POLICY}", "-c node_policies=...", node_policies=POLICY),
    case(nothing, "bucket our-results", "aws s3 ls", write_buckets="our-results/runs"),
    case(refused("GetRole", "NoSuchEntity"), f"capacity=spot: role {SPOT_ROLE}", "spot.amazonaws", **SPOT),
    case(key_of_ones_own, "key of the root volumes: policy", '": ["ec2.us-east-1.amazonaws.com"]'),
    case(without_images, "official image", "-c os=..."),
    case(
        lambda own: own.deploy("TrainingCluster-Network", description="Theirs", VpcId=OTHER_VPC),
        *("stack TrainingCluster-Network", "another region or account"),
    ),
    case(
        lambda own: own.deploy(CLUSTER, description="Another app's", TopicArn="arn"),
        *(f"names of the cluster {CLUSTER}", f"-c cluster_name={CLUSTER}-2"),
    ),
    case(foreign_key, f"names of the cluster {CLUSTER}", f"-c key_name={CLUSTER}-key"),
    case(nothing, "key_name none", "aws ec2 create-key-pair", key_name="none", os="alinux2023"),
)

# Of a deploy that brings network and storage.
OWN = (
    case(lambda own: own.without_dns("EnableDnsHostnames"), "VPC: dns-hostnames", "--enable-dns-hostnames"),
    case(lambda own: own.without_dns("EnableDnsSupport"), "VPC: dns-support", "--enable-dns-support"),
    case(OwnAccount.give_no_public_addresses, "public subnet: gives public", "--map-public-ip-on-launch"),
    case(
        lambda own: own.reroute(own.public_table, NatGatewayId=own.nat),
        *("public subnet: route to the internet", "internet gateway; or none: -c public_access=off"),
    ),
    case(lambda own: own.reroute(own.private_table), EGRESS, "aws ec2 create-route"),
    case(lambda own: own.reroute(own.private_table, GatewayId=own.internet), EGRESS, "-c private_subnet_id="),
    case(nat_routes(NatGatewayId="nat-1", State="blackhole"), EGRESS, "create-route"),
    case(subnet("public", VpcId=OTHER_VPC), "public_subnet_id subnet-", "-c public_subnet_id=..."),
    case(subnet("private", OwnerId="210987654321"), "private_subnet_id: owner", "no nodes in a shared one"),
    case(subnet("public", AvailabilityZoneId="use1-az1"), "both subnets in one zone", "subnet in use1-az6"),
    case(subnet("private", AvailableIpAddressCount=77), FREE, "77, of which a full cluster takes 78", **MANY),
    case(answered("DescribeVpcs", {"Vpcs": []}), "VPC", "-c vpc_id="),
    case(subnet("private", AvailableIpAddressCount=65), FREE, "-c nodes=..."),
    case(offers(TYPE, without=("use1-az6",)), f"{TYPE} in use1-az6", "in a zone that has all types"),
    case(group("nodes", "ingress", itself), "security group: all ingress to itself", "group-ingress"),
    case(group("nodes", "egress", itself), "security group: all egress to itself", "group-egress"),
    case(amended("DescribeSecurityGroups", "SecurityGroups", VpcId=OTHER_VPC), "security_group_id sg", "..."),
    case(reservation(AvailabilityZoneId="use1-az1"), "reservation: zone", "-c private_subnet_id=..."),
    case(nothing, "bucket_name own-data-nowhere", "aws s3 ls", bucket_name="own-data-nowhere"),
    case(refused("HeadBucket", "403"), f"bucket_name {BUCKET}", "aws s3 ls"),
    case(nothing, f"bucket_name {ABROAD}", "of a bucket in us-east-1", bucket_name=ABROAD),
    case(nothing, f"fsx_id {GONE_FSX}", "aws fsx describe-file-systems", fsx_id=GONE_FSX),
    case(systems(FileSystemType="WINDOWS"), "fsx_id fs-", "-c fsx_id=..."),
    case(systems(Lifecycle="FAILED"), "fsx_id fs-", "until it is AVAILABLE"),
    case(systems(VpcId=OTHER_VPC), "Lustre: in the nodes' VPC", f"-c vpc_id={OTHER_VPC}"),
    case(group("lustre_group", "ingress", nodes_on(988, 988)), OF_LUSTRE, "authorize-security-group-ingress"),
    case(group("lustre_group", "egress", nodes_on(1018, 1023)), OF_LUSTRE, "authorize-security-group-egress"),
    case(nothing, f"efs_id {GONE_EFS}", "aws efs describe-file-systems", efs_id=GONE_EFS),
    case(
        without("efs", "delete_mount_target", OwnAccount.make_mount_target, MountTargetId="mount_target"),
        *("EFS: mount target in use1-az6", "aws efs create-mount-target"),
    ),
    case(group("nfs_group", "ingress", nodes_on(2049, 2049)), OF_EFS, "authorize-security-group-ingress"),
    case(
        without("ec2", "delete_key_pair", lambda own: own.make_key(KEY, "ed25519"), KeyName=KEY),
        *(f"key_name {KEY}", "aws ec2 create-key-pair"),
    ),
    case(nothing, f"key_name {RSA}", "ed25519", key_name=RSA),
    case(WITHOUT_GROUP, f"placement_group {GROUP}", "--strategy cluster"),
    case(nothing, f"permissions_boundary {POLICY}", "-c permissions_boundary=", permissions_boundary=POLICY),
    case(nothing, f"permissions_boundary {NO_IAM}: rights", "iam:CreateRole, ", permissions_boundary=NO_IAM),
    case(nothing, "accounting_secret", "aws secretsmanager list-secrets", accounting_secret=NO_SECRET),
)

# What is not known or works worse, of a deploy that brings its own, and of one that brings nothing.
OWN_WARNINGS = (
    case(
        without("ec2", "delete_vpc_endpoints", OwnAccount.make_s3_endpoint, VpcEndpointIds="s3_endpoints"),
        *("private subnet: S3 gateway endpoint", "create-vpc-endpoint"),
    ),
    case(nat_routes(TransitGatewayId="tgw-1"), EGRESS, "curl"),
    case(group("nodes", "egress", lambda _: WORLD), "security group: HTTPS to the internet", "FromPort=443"),
    case(spreading, f"placement_group {GROUP}", "--strategy cluster"),
    case(encrypted(KMS_KEY), "bucket: encryption", f"with the key {KMS_KEY}"),
    case(unversioned, "bucket: versioning", "aws s3api put-bucket-versioning"),
    case(
        without("fsx", "delete_data_repository_association", OwnAccount.make_link, AssociationId="link"),
        *(EXPORTS, f"--file-system-path /checkpoints --data-repository-path s3://{BUCKET}/checkpoints/ "),
    ),
    case(links(S3={"AutoImportPolicy": {"Events": ["NEW"]}}), EXPORTS, "no association exports"),
    case(links(FileSystemPath="/other"), EXPORTS, "/other"),
    case(systems(FileSystemTypeVersion="2.10"), "Lustre: version", "--file-system-type-version 2.15"),
)
NEW_WARNINGS = (
    case(
        lambda own: own.account.answers["GetCallerIdentity"].update(Arn=f"arn:aws:iam::{ACCOUNT}:root"),
        *("credentials", "the root user"),
    ),
    case(endpoints(fsx="us-east-1z"), "zone us-east-1", "no endpoint of fsx there"),
    case(reservation(InstanceMatchCriteria="open"), "reservation: for named inst", "open: any", **RESERVED),
    case(reserved_group(NO_RESERVATION, TotalInstanceCount=1), f"capacity {IN_A_GROUP}", "1", **GROUPED),
    case(
        block(State="scheduled", StartDate=NOW + DAY, TotalInstanceCount=0),
        *("capacity cr-", f"scheduled: starts {NOW + DAY:%Y-%m-%d}"),
        **BLOCK,
    ),
    case(
        refused("DescribeAddresses", "UnauthorizedOperation", "not authorized to perform this operation."),
        *("quota of elastic IP addresses", "not checked: these credentials lack DescribeAddresses"),
    ),
    case(
        refused("DescribeImages", "InternalError", "AWS has trouble"),
        *("image", "not checked: An error occurred (InternalError) when calling the DescribeImages"),
    ),
    case(
        refused("DescribeBudgets", "AccessDeniedException", "perform: budgets:ViewBudget on"),
        *("budget_usd", "not checked: these credentials lack budgets:ViewBudget"),
        **BUDGET,
    ),
    case(
        refused("DescribeStacks", "AccessDenied", "not authorized to perform: cloudformation:DescribeStacks"),
        *("stacks and network, assumed to be", "these credentials lack cloudformation:DescribeStacks"),
    ),
    case(nothing, f"key_name {RSA}", "ed25519", key_name=RSA, os="alinux2023"),
)
BROKEN = (
    *((each, False, "problem") for each in NEW),
    *((each, True, "problem") for each in OWN),
    *((each, False, "warning") for each in NEW_WARNINGS),
    *((each, True, "warning") for each in OWN_WARNINGS),
)


@pytest.mark.parametrize(("broken", "brings", "verdict"), BROKEN)
def test_broken_account_is_one_finding(own: OwnAccount, broken: Case, *, brings: bool, verdict: str) -> None:
    break_, flags, check, told = broken
    break_(own)
    (found,) = bad(own, (own.flags if brings else {"family": "p4d"}) | flags)
    assert found.check.startswith(check.replace("{}", own.reservation))
    assert found.verdict == verdict
    assert told.replace("{}", own.reservation) in f"{found.found}\n{found.mend}"


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
    (links(FileSystemPath="/"), True, {}),
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


def test_quotas_count_what_overrides_make(own: OwnAccount, tmp_path: Path) -> None:
    overrides = tmp_path / "overrides.yaml"
    overrides.write_text(
        "HeadNode: {Networking: {ElasticIp: true}}\nSharedStorage:\n"
        "  - {Name: a, MountDir: /a, StorageType: Ebs, EbsSettings: {Size: 1024}}\n"
        "  - {Name: l, MountDir: /l, StorageType: FsxLustre, FsxLustreSettings: {StorageCapacity: 1200}}\n"
    )
    for code, most, wanted in ((ADDRESSES, 1, "3"), (GP3, 1.6, "1.62"), (SCRATCH, 1199, "1200")):
        own.quota(code, most)
        (found,) = bad(own, {"family": "p4d", "overrides": str(overrides)})
        assert found.mend.endswith(f"--quota-code {code} --desired-value {wanted}")


def test_policies_and_buckets_of_one_node(own: OwnAccount, tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    rights = f"AdditionalIamPolicies: [{{Policy: '{POLICY}'}}], S3Access: [{{BucketName: secrets}}]"
    file.write_text(f"HeadNode: {{Iam: {{{rights}}}}}")
    found = bad(own, {"family": "p4d", "overrides": str(file)})
    assert [each.check for each in found] == [f"node_policies {POLICY}", "bucket secrets"]


def test_granted_increase_ends_the_problem(own: OwnAccount) -> None:
    many = {"family": "p4d", "nodes": "104"}
    found, *of_storage = bad(own, many)
    words = found.mend.split()
    given = dict(zip(words[3::2], words[4::2], strict=True))
    own.client("service-quotas").request_service_quota_increase(
        ServiceCode=given["--service-code"],
        QuotaCode=given["--quota-code"],
        DesiredValue=float(given["--desired-value"]),
    )
    assert bad(own, many) == of_storage


def test_storage_has_to_keep_up_with_nodes(own: OwnAccount) -> None:
    def of_storage(**flags: str) -> dict[str, str]:
        names = ("Lustre: checkpoints", "Lustre: images", "head node: NFS")
        found = bad(own, {"nodes": "104", **flags})
        return {each.check: f"{each.found}; {each.mend}" for each in found if each.check in names}

    found = of_storage(family="p4d")
    assert "have room for 2, and a run has up to 3" in found["Lustre: checkpoints"]
    assert "; -c fsx_gib=" in found["Lustre: checkpoints"]
    assert "Lustre: images" not in found, "its nodes have local disks, and one reads for all"
    assert "take 46 min at the 750 MB/s" in of_storage(family="m6i")["Lustre: images"]
    assert found["head node: NFS"].endswith(
        "; -c home=efs and -c overrides=FILE with HeadNode: {SharedStorageType: Efs}"
    )
    ours = own.flags | {"capacity": "ondemand"}
    existing = of_storage(**ours)["Lustre: checkpoints"]
    assert "have room for 2, and a run has up to 3" in existing
    assert existing.count(f"update-file-system --file-system-id {ours['fsx_id']} --storage-capacity") == 2
    assert "-c fsx" not in existing
    systems(StorageCapacity=9600)(own)
    assert of_storage(**ours).keys() == {"head node: NFS"}, "of an existing file system FSx knows the size"
