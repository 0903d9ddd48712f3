"""Checks of queues beside that of the flags: subnets, quotas, reservations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.preflight.capacity.vcpus import Instances, wanted_instances
from tests.unit.ops.preflight.preflight_account import RESERVATION
from tests.unit.ops.preflight.preflight_network import NAT, OWN, PRIVATE, PUBLIC, VPC, Network, findings
from training_cluster.catalog.families import load_family
from training_cluster.rules.context import read_settings

EFS = "fs-0123456789abcdef0"
OTHER = "subnet-0cccccccccccccccc"
QUEUE = f"far: {{instance_types: m6i.4xlarge, nodes: 10, subnet_ids: {OTHER}}}"


def _network() -> Network:
    network = Network()
    network.subnets[OTHER] = network.subnets[PUBLIC] | {"SubnetId": OTHER, "AvailabilityZoneId": "use1-az6"}
    network.routes[OTHER] = [NAT]
    network.efs = [{"zone": "use1-az4"}, {"zone": "use1-az6"}]
    return network


@pytest.fixture
def queues(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Write a file of queues, and return its flag."""

    def write(text: str) -> dict[str, str]:
        file = tmp_path / "queues.yaml"
        file.write_text(text)
        return {"queues": str(file)}

    return write


def test_a_subnet_in_another_zone_is_fine(queues: Callable[[str], dict[str, str]]) -> None:
    found = findings(_network(), **OWN, **queues(QUEUE), efs_id=EFS)
    ours = {each.check: each for each in found if each.check.startswith("queue far")}
    assert [each.verdict for each in ours.values()] == ["ok"] * 4
    assert "use1-az6" in ours[f"queue far: {OTHER}"].found


@pytest.mark.parametrize(
    ("change", "check", "mend"),
    [
        (lambda n: n.subnets.pop(OTHER), f"queue far: {OTHER}", f"Name=vpc-id,Values={VPC}"),
        (lambda n: n.subnets[OTHER].update(VpcId="vpc-1"), f"queue far: {OTHER}", "subnet_ids of far"),
        (lambda n: n.routes.update({OTHER: []}), "route to the internet", "create-route"),
        (lambda n: n.subnets[OTHER].update(AvailableIpAddressCount=9), "free addresses", "fewer nodes"),
        (lambda n: n.efs.pop(), "mount target of EFS", "aws efs create-mount-target --file-system-id fs-"),
    ],
)
def test_what_is_wrong_with_a_subnet_is_said(
    queues: Callable[[str], dict[str, str]], change: Callable[[Network], Any], check: str, mend: str
) -> None:
    network = _network()
    change(network)
    found = findings(network, **OWN, **queues(QUEUE), efs_id=EFS)
    (wrong,) = [each for each in found if "queue far" in each.check and each.verdict != "ok"]
    assert check in wrong.check
    assert mend in str(wrong.mend)


def test_a_new_efs_needs_a_second_mount_target(
    queues: Callable[[str], dict[str, str]],
) -> None:
    found = {each.check: each for each in findings(_network(), **OWN, **queues(QUEUE))}
    target = found[f"queue far: {OTHER}: mount target of EFS"]
    assert target.verdict == "problem"
    assert str(target.mend).startswith("npx cdk deploy StorageStack -c family=")
    assert ", then aws efs create-mount-target" in str(target.mend)


def test_missing_internet_is_a_warning_without_managed_dns(tmp_path: Path) -> None:
    network, overrides = Network(), tmp_path / "overrides.yaml"
    network.routes[PRIVATE] = []
    overrides.write_text("Scheduling: {SlurmSettings: {Dns: {DisableManagedDns: true}}}")
    found = {each.check: each for each in findings(network, **OWN, overrides=str(overrides))}
    assert found["private subnet: route to the internet"].verdict == "warning"
    assert {each.check: each for each in findings(network, **OWN)}[
        "private subnet: route to the internet"
    ].verdict == "problem"


def test_quotas_count_the_nodes_of_every_queue(queues: Callable[[str], dict[str, str]]) -> None:
    text = """
a: {instance_types: [g6.12xlarge, g5.12xlarge], nodes: 8, capacity: spot}
b: {family: m7i, nodes: 3}
"""
    wanted = wanted_instances(read_settings({"family": "p5", **queues(text)}))
    assert Instances("g6.12xlarge", 8, "spot") in wanted
    assert Instances(load_family("m7i").main_size, 3, "ondemand") in wanted
    assert Instances("p5.48xlarge", 2, "ondemand") in wanted


def test_the_reservation_of_a_queue_is_checked(queues: Callable[[str], dict[str, str]]) -> None:
    text = f"block: {{family: g5, nodes: 4, capacity: 'reservation:{RESERVATION}'}}"
    found = {each.check: each for each in findings(Network(), **queues(text))}
    wrong = found["reservation: instance type"]
    assert (wrong.found, wrong.verdict) == ("p4d.24xlarge", "problem")
    assert found["reservation: instances"].found.endswith("the cluster needs 4")
