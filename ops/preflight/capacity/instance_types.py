"""Checks that the zone of an existing network has the instance types; zone.py checks a new network."""

from collections.abc import Iterator
from typing import Any

from ops.account.session import every
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy


def check_instance_types(settings: Settings, existing: ExistingNetwork, ec2: Any) -> Iterator[Finding]:
    """Check each type; the head node's public subnet is in the same zone as the private one."""
    if not settings.vpc_id or existing.zone_id is None:
        return
    wanted: list[str] = zone_needs(settings, config_before_deploy(settings))["InstanceTypes"]
    zone = existing.zone_id
    offered = _offered(wanted, ec2)
    whole = sorted(each for each, types in offered.items() if types == set(wanted))
    listed, region = ", ".join(whole) or "none", ec2.meta.region_name
    for type_ in wanted:
        where = sorted(each for each, types in offered.items() if type_ in types)
        is_here = zone in where
        yield finding(
            f"{type_} in {zone}",
            "offered" if is_here else f"not offered; in {', '.join(where) or f'no zone of {region}'}",
            good=is_here,
            mend=f"subnets in a zone that has all types: {listed}",
        )


def _offered(types: list[str], ec2: Any) -> dict[str, set[str]]:
    """Return the ids of zones, with the types that each offers."""
    found: dict[str, set[str]] = {}
    asked = {
        "LocationType": "availability-zone-id",
        "Filters": [{"Name": "instance-type", "Values": types}],
    }
    for each in every(ec2, "describe_instance_type_offerings", "InstanceTypeOfferings", **asked):
        found.setdefault(each["Location"], set()).add(each["InstanceType"])
    return found
