"""`trainctl preflight`: each single thing that is wrong with an account gets its line, and no other does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ops.fake_account import Refused
from tests.unit.ops.preflight.preflight_account import (
    ACCOUNT,
    DAY,
    GP3,
    INTERFACES,
    P_SPOT,
    RESERVATION,
    STANDARD,
    VPCS,
    P,
    instance,
    now,
)
from tests.unit.ops.preflight.preflight_network import OWN, PRIVATE, PUBLIC, Network, bad, findings

Change = Callable[[Network], Any]
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
RESERVED = {"capacity": f"reservation:{RESERVATION}"}
BLOCK = {"capacity": f"capacity-block:{RESERVATION}"}
NAMED = {
    "permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/bound",
    "accounting": "db.example.com",
    "accounting_secret": f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:slurm-AbCdEf",
    "placement_group": "mine",
    "node_policies": f"arn:aws:iam::{ACCOUNT}:policy/team",
    "write_buckets": "our-results/runs",
}
ON_DEMAND_P = "quota: Running On-Demand P instances"
ON_DEMAND_STANDARD = "quota: Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
SPOT_P = "quota: All P4, P3 and P2 Spot Instance Requests"
EC2_DENIED = Refused("UnauthorizedOperation", "You are not authorized to perform this operation.")


def as_block(**more: Any) -> Change:
    return lambda n: n.reservation.update({"ReservationType": "capacity-block", **more})


def of_reservation(**more: Any) -> Change:
    return lambda n: n.reservation.update(more)


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"capacity": "spot"},
        RESERVED,
        {**RESERVED, **OWN},
        {"endpoints": "private", "login_nodes": "1", "budget_usd": "100", "alarm_email": "a@example.com"},
        {"fsx_type": "scratch2"},
        NAMED,
    ],
)
def test_where_all_is_well_nothing_is_to_mend(flags: dict[str, str]) -> None:
    network = Network()
    network.quotas["L-AD2FC696"] = 1200
    network.offered["use1-az4"].append("m6i.xlarge")
    found = findings(network, **flags)
    assert [each for each in found if each.verdict != "ok" or each.mend] == []
    assert {"credentials", "CDK bootstrap", "official image", ON_DEMAND_STANDARD} <= {e.check for e in found}


def test_what_the_cluster_itself_runs_counts_once() -> None:
    network = Network()
    ours = {"Tags": [{"Key": "parallelcluster:cluster-name", "Value": "training"}]}
    network.instances = [instance("p4d.24xlarge", cluster="training", interfaces=4) for _ in range(2)]
    network.interfaces, network.quotas[INTERFACES] = 2 * 4, 1 + 1 + 2 * 4
    network.volumes, network.quotas[GP3] = [{"Size": 256, **ours} for _ in range(2)], 0.62
    assert [each.check for each in findings(network) if each.verdict != "ok"] == []


@pytest.mark.parametrize("public", [PRIVATE, PUBLIC, None])
def test_without_public_access_one_private_subnet_is_enough(public: str | None) -> None:
    flags = {key: value for key, value in OWN.items() if key != "public_subnet_id"}
    network = Network()
    network.subnets[PUBLIC]["MapPublicIpOnLaunch"] = False
    network.routes[PUBLIC] = []
    given = {"public_subnet_id": public} if public else {}
    found = findings(network, public_access="off", **flags, **given)
    assert [each for each in found if each.verdict != "ok"] == []
    (addresses,) = [each for each in found if each.check == "private subnet: free addresses"]
    (before,) = [e for e in findings(Network(), **OWN) if e.check == "private subnet: free addresses"]
    taken = [int(each.found.split()[-1]) for each in (addresses, before)]
    assert taken[0] == taken[1] + 1


@pytest.mark.parametrize(
    ("change", "flags", "check", "mend"),
    [
        (
            lambda n: setattr(n, "opted_in", "not-opted-in"),
            {},
            "region us-east-1",
            "aws account enable-region",
        ),
        (
            lambda n: n.parameters.pop(BOOTSTRAP),
            {},
            "CDK bootstrap",
            f"npx cdk bootstrap aws://{ACCOUNT}/us-east-1",
        ),
        (lambda n: n.parameters.update({BOOTSTRAP: "5"}), {}, "CDK bootstrap", "npx cdk bootstrap"),
        (lambda n: n.quotas.update({P: 191}), {}, ON_DEMAND_P, "--quota-code L-417A185B --desired-value 192"),
        (
            lambda n: n.instances.append(instance("p4d.24xlarge")),
            {},
            ON_DEMAND_P,
            "--service-code ec2 --quota-code L-417A185B --desired-value 288",
        ),
        (
            of_reservation(AvailableInstanceCount=1),
            {},
            ON_DEMAND_P,
            "--desired-value 288",
        ),
        (lambda n: n.quotas.update({P_SPOT: 96}), {"capacity": "spot"}, SPOT_P, "--quota-code L-7212CCBC"),
        (
            lambda n: n.instances.append(instance("p3dn.24xlarge", lifecycle="spot")),
            {"capacity": "spot"},
            SPOT_P,
            "--desired-value 288",
        ),
        (lambda n: n.quotas.update({STANDARD: 5}), {}, ON_DEMAND_STANDARD, "--desired-value 16"),
        (
            lambda n: n.quotas.update({STANDARD: 16 + 4 - 1}),
            {"login_nodes": "1"},
            ON_DEMAND_STANDARD,
            "value 20",
        ),
        (
            lambda n: n.quotas.update({STANDARD: 16 + 4 * 64 - 1}),
            {"cpu_queue": "on"},
            ON_DEMAND_STANDARD,
            "--desired-value 272",
        ),
        (
            # The head node, and 2 nodes with 4 interfaces each.
            lambda n: n.quotas.update({INTERFACES: 1 + 2 * 4}),
            {},
            "quota: Network interfaces per Region",
            "--service-code vpc --quota-code L-DF5E4CA3 --desired-value 10",
        ),
        (
            lambda n: setattr(n, "interfaces", 5000),
            {},
            "quota: Network interfaces per Region",
            "--desired-value 5010",
        ),
        (
            # 128 GiB of the head node, and 2 x 256.
            lambda n: n.quotas.update({GP3: 0.6}),
            {},
            "quota: Storage for General Purpose SSD (gp3) volumes, in TiB",
            "--service-code ebs --quota-code L-7A658B76 --desired-value 0.62",
        ),
        (
            lambda n: n.volumes.append({"Size": 50 * 1024}),
            {},
            "quota: Storage for General Purpose SSD (gp3) volumes, in TiB",
            "--desired-value 50.62",
        ),
        (lambda n: n.quotas.update({VPCS: 1}), {}, "quota: VPCs per Region", "--service-code vpc"),
        (lambda n: setattr(n, "addresses", 5), {}, "quota: EC2-VPC Elastic IPs", "--quota-code L-0263D0A3"),
        (
            lambda n: setattr(n, "nat_subnets", [PRIVATE] * 5),
            {},
            "quota: NAT gateways per Availability Zone",
            "--quota-code L-FE5A380F --desired-value 6",
        ),
        (
            lambda n: n.file_systems.append(
                {"StorageCapacity": 100000, "LustreConfiguration": {"DeploymentType": "PERSISTENT_2"}}
            ),
            {},
            "quota: Lustre Persistent_2 storage capacity",
            "--service-code fsx --quota-code L-8F1B9C74 --desired-value 101200",
        ),
        (
            lambda n: n.offered.update({"use1-az4": ["c5.4xlarge"]}),
            {},
            "zone with c5.4xlarge, p4d.24xlarge",
            "another region",
        ),
        (lambda n: setattr(n, "reservation", None), RESERVED, f"capacity {RESERVATION}", "cr-..."),
        (of_reservation(State="cancelled"), RESERVED, f"capacity {RESERVATION}", "cr-..."),
        (as_block(State="expired", EndDate=now() - DAY), BLOCK, f"capacity {RESERVATION}", "-c capacity="),
        (
            lambda n: n.reservation.update(InstanceType="p4de.24xlarge"),
            RESERVED,
            "reservation: instance type",
            "-c instance_type=p4de.24xlarge",
        ),
        (of_reservation(TotalInstanceCount=1), RESERVED, "reservation: instances", "-c nodes=1"),
        (
            of_reservation(Tenancy="dedicated"),
            RESERVED,
            "reservation: tenancy and platform",
            "default tenancy",
        ),
        (as_block(), RESERVED, "reservation: kind", f"-c capacity=capacity-block:{RESERVATION}"),
        (
            of_reservation(AvailabilityZoneId="use1-az1", AvailabilityZone="us-east-1a"),
            RESERVED,
            "zone with c5.4xlarge, p4d.24xlarge",
            "-c zone=use1-az4",
        ),
        (
            of_reservation(AvailabilityZoneId="use1-az1", AvailabilityZone="us-east-1a"),
            {**RESERVED, **OWN},
            "reservation: zone",
            "-c private_subnet_id=...",
        ),
        (
            lambda n: n.endpoints.update(sts=["us-east-1a"]),
            {"endpoints": "private"},
            "endpoints=private in us-east-1d",
            "-c endpoints=none",
        ),
        (
            lambda n: setattr(n, "boundary", Refused("NoSuchEntity")),
            {"permissions_boundary": NAMED["permissions_boundary"]},
            f"permissions_boundary {NAMED['permissions_boundary']}",
            "-c permissions_boundary=...",
        ),
        (
            lambda n: setattr(n, "boundary", Refused("NoSuchEntity")),
            {"node_policies": NAMED["node_policies"]},
            f"node_policies {NAMED['node_policies']}",
            "-c node_policies=...",
        ),
        (
            lambda n: setattr(n, "bucket", Refused("404")),
            NAMED,
            "bucket our-results",
            "aws s3 ls",
        ),
        (
            lambda n: setattr(n, "secret", Refused("ResourceNotFoundException")),
            NAMED,
            "accounting_secret",
            "aws secretsmanager list-secrets",
        ),
        (
            lambda n: n.roles.clear(),
            {"capacity": "spot"},
            "capacity=spot: role AWSServiceRoleForEC2Spot",
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
        ),
        (
            lambda n: setattr(n, "volume_key", f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d"),
            {},
            "key of the root volumes: policy",
            '"kms:ViaService": ["ec2.us-east-1.amazonaws.com"]',
        ),
        (lambda n: n.group_strategies.clear(), NAMED, "placement_group mine", "--strategy cluster"),
        (lambda n: n.images.clear(), {}, "official image", "-c os=..."),
    ],
)
def test_one_thing_that_is_wrong_is_one_problem(
    change: Change, flags: dict[str, str], check: str, mend: str
) -> None:
    network = Network()
    network.offered["use1-az4"] += ["m6i.xlarge", "m6i.16xlarge"]
    change(network)
    (problem,) = bad(network, **flags)
    assert (problem.check, problem.verdict) == (check, "problem")
    assert mend in problem.mend


@pytest.mark.parametrize(
    ("change", "flags", "check", "said"),
    [
        (lambda n: setattr(n, "arn", f"arn:aws:iam::{ACCOUNT}:root"), {}, "credentials", "the root user"),
        (
            of_reservation(InstanceMatchCriteria="open"),
            RESERVED,
            "reservation: for named instances only",
            "open",
        ),
        (
            as_block(State="scheduled", StartDate=now() + DAY, TotalInstanceCount=0),
            BLOCK,
            f"capacity {RESERVATION}",
            f"scheduled: starts {now() + DAY:%Y-%m-%d}",
        ),
        (
            lambda n: n.refused.update(DescribeAddresses=EC2_DENIED),
            {},
            "quota of elastic IP addresses",
            "not checked: these credentials lack DescribeAddresses",
        ),
        (
            lambda n: n.refused.update(DescribeImages=Refused("InternalError", "AWS has trouble")),
            {},
            "image",
            "not checked: An error occurred (InternalError) when calling the DescribeImages operation",
        ),
        (
            lambda n: setattr(
                n, "budgets", Refused("AccessDeniedException", "perform: budgets:ViewBudget on")
            ),
            {"budget_usd": "100", "alarm_email": "a@example.com"},
            "budget_usd",
            "not checked: these credentials lack budgets:ViewBudget",
        ),
    ],
)
def test_what_is_not_known_or_works_worse_is_one_warning(
    change: Change, flags: dict[str, str], check: str, said: str
) -> None:
    network = Network()
    change(network)
    (warning,) = bad(network, **flags)
    assert (warning.check, warning.verdict) == (check, "warning")
    assert said in warning.found


def test_policies_and_buckets_of_one_node_are_checked(tmp_path: Path) -> None:
    arn, file, network = NAMED["node_policies"], tmp_path / "overrides.yaml", Network()
    rights = f"AdditionalIamPolicies: [{{Policy: '{arn}'}}], S3Access: [{{BucketName: secrets}}]"
    file.write_text(f"HeadNode: {{Iam: {{{rights}}}}}")
    network.boundary, network.bucket = Refused("NoSuchEntity"), Refused("404")
    assert [each.check for each in bad(network, overrides=str(file))] == [
        f"node_policies {arn}",
        "bucket secrets",
    ]
