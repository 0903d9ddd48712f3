"""Checks of queues beside that of the flags: subnets, quotas, reservations."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ops.preflight.capacity.vcpus import Instances, wanted_instances
from tests.unit.ops.own_account import OwnAccount
from tests.unit.ops.preflight.test_checks import findings
from training_cluster.catalog.families import load_family
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

ZONE_ID = "use1-az1"
Flags = dict[str, str]
Queues = Callable[[str], Flags]


@pytest.fixture
def queues(tmp_path: Path) -> Queues:
    """Write a file of queues, and return its flag."""

    def write(text: str) -> Flags:
        file = tmp_path / "queues.yaml"
        file.write_text(text)
        return {"queues": str(file)}

    return write


@pytest.fixture
def far(own: OwnAccount) -> str:
    """A subnet in another zone than the cluster's, with a mount target of EFS."""
    made = own.ec2.create_subnet(
        VpcId=own.network.vpc, CidrBlock="10.0.32.0/20", AvailabilityZone="us-east-1b"
    )
    subnet = str(made["Subnet"]["SubnetId"])
    own.later(own.ec2.delete_subnet, SubnetId=subnet)
    table = own.ec2.associate_route_table(RouteTableId=own.private_table, SubnetId=subnet)
    own.later(own.ec2.disassociate_route_table, AssociationId=table["AssociationId"])
    target = own.client("efs").create_mount_target(
        FileSystemId=own.efs, SubnetId=subnet, SecurityGroups=[own.nfs_group]
    )
    own.later(own.client("efs").delete_mount_target, MountTargetId=target["MountTargetId"])
    return subnet


@pytest.fixture
def flags(own: OwnAccount, far: str, queues: Queues) -> Flags:
    """Flags of a deploy that brings its own, with a queue in the far subnet."""
    return own.flags | queues(f"far: {{instance_types: m6i.4xlarge, nodes: 10, subnet_ids: {far}}}")


def test_a_subnet_in_another_zone_is_fine(own: OwnAccount, far: str, flags: Flags) -> None:
    ours = {each.check: each for each in findings(own, flags) if each.check.startswith("queue far")}
    assert [each.verdict for each in ours.values()] == ["ok"] * 4
    assert ZONE_ID in ours[f"queue far: {far}"].found


def _far(own: OwnAccount, **members: Any) -> None:
    def change(said: dict[str, Any]) -> None:
        for each in said["Subnets"]:
            each.update(members if each["AvailabilityZoneId"] == ZONE_ID else {})

    own.amend("DescribeSubnets", change)


def _without_far(said: dict[str, Any], key: str) -> None:
    said[key] = [each for each in said[key] if each["AvailabilityZoneId"] != ZONE_ID]


def _without_route(said: dict[str, Any]) -> None:
    for table in said["RouteTables"]:
        table["Routes"] = [each for each in table["Routes"] if "NatGatewayId" not in each]


@pytest.mark.parametrize(
    ("change", "check", "mend"),
    [
        (
            lambda own: own.amend("DescribeSubnets", partial(_without_far, key="Subnets")),
            "queue far: subnet-",
            "Name=vpc-id,Values=vpc-",
        ),
        (lambda own: _far(own, VpcId="vpc-1"), "queue far: subnet-", "subnet_ids of far"),
        (
            lambda own: own.amend("DescribeRouteTables", _without_route),
            "route to the internet",
            "create-route",
        ),
        (lambda own: _far(own, AvailableIpAddressCount=9), "free addresses", "fewer nodes"),
        (
            lambda own: own.amend("DescribeMountTargets", partial(_without_far, key="MountTargets")),
            "mount target of EFS",
            "aws efs create-mount-target --file-system-id fs-",
        ),
    ],
)
def test_what_is_wrong_with_a_subnet_is_said(
    own: OwnAccount, flags: Flags, change: Callable[[OwnAccount], None], check: str, mend: str
) -> None:
    change(own)
    found = findings(own, flags)
    (wrong,) = [each for each in found if "queue far" in each.check and each.verdict != "ok"]
    assert check in wrong.check
    assert mend in wrong.mend


def test_queues_of_one_subnet_add_up(own: OwnAccount, far: str, queues: Queues) -> None:
    each = f"{{instance_types: m6i.4xlarge, nodes: 6, subnet_ids: {far}}}"
    _far(own, AvailableIpAddressCount=11)
    found = {each.check: each for each in findings(own, own.flags | queues(f"a: {each}\nb: {each}"))}
    assert "11, of which a full cluster takes 12" in found[f"queue b: {far}: free addresses"].found


def test_login_nodes_may_have_their_own_subnet(own: OwnAccount, far: str, tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    file.write_text(f"LoginNodes: {{Pools: [{{Name: login, Networking: {{SubnetIds: [{far}]}}}}]}}")
    found = findings(own, own.flags | {"login_nodes": "3", "overrides": str(file)})
    ours = {each.check: each for each in found if each.check.startswith("login nodes login")}
    assert len(ours) == 3, "no way to the internet: it may be a public subnet"
    assert "takes 4" in ours[f"login nodes login: {far}: free addresses"].found, "and the load balancer"


def test_groups_of_compute_resources_are_checked(own: OwnAccount, queues: Queues) -> None:
    item = "{name: x, instance_types: m6i.4xlarge, placement_group: nobodys}"
    found = {
        each.check: each for each in findings(own, own.flags | queues(f"a: {{compute_resources: [{item}]}}"))
    }
    assert "placement_group nobodys" in found


def test_a_new_efs_needs_a_second_mount_target(own: OwnAccount, far: str, flags: Flags) -> None:
    del flags["efs_id"]
    found = {each.check: each for each in findings(own, flags)}
    target = found[f"queue far: {far}: mount target of EFS"]
    assert target.verdict == "problem"
    assert target.mend.startswith("npx cdk deploy StorageStack -c family=")
    assert ", then aws efs create-mount-target" in target.mend


def test_missing_internet_is_a_warning_without_managed_dns(own: OwnAccount, tmp_path: Path) -> None:
    overrides = tmp_path / "overrides.yaml"
    overrides.write_text("Scheduling: {SlurmSettings: {Dns: {DisableManagedDns: true}}}")
    own.amend("DescribeRouteTables", _without_route)
    found = {each.check: each for each in findings(own, own.flags | {"overrides": str(overrides)})}
    assert found["private subnet: route to the internet"].verdict == "warning"


def test_quotas_count_the_nodes_of_every_queue(queues: Queues) -> None:
    text = """
a: {instance_types: [g6.12xlarge, g5.12xlarge], nodes: 8, capacity: spot}
b: {family: m7i, nodes: 3}
"""
    wanted = wanted_instances(config_before_deploy(read_settings({"family": "p5", **queues(text)})))
    assert Instances("g6.12xlarge", 8, "spot") in wanted
    assert Instances(load_family("m7i").main_size, 3, "ondemand") in wanted
    assert Instances("p5.48xlarge", 2, "ondemand") in wanted


def test_quotas_count_pools_of_overrides(tmp_path: Path) -> None:
    overrides = tmp_path / "overrides.yaml"
    overrides.write_text("LoginNodes: {Pools: [{Name: more, Count: 3, InstanceType: c6i.large}]}")
    settings = read_settings({"login_nodes": "1", "overrides": str(overrides)})
    wanted = wanted_instances(config_before_deploy(settings))
    assert Instances("c6i.large", 3, "ondemand") in wanted


def test_the_reservation_of_a_queue_is_checked(own: OwnAccount, queues: Queues) -> None:
    text = f"block: {{family: g5, nodes: 4, capacity: 'reservation:{own.reservation}'}}"
    found = {each.check: each for each in findings(own, queues(text))}
    wrong = found["reservation: instance type"]
    assert (wrong.found, wrong.verdict) == ("p4d.24xlarge", "problem")
    assert found["reservation: instances"].found.endswith("the cluster needs 4")
