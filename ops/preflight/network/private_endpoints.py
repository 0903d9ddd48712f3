"""Checks that AWS offers the interface endpoints of endpoints=private in the zone."""

from collections.abc import Iterator
from typing import Any

from ops.account.session import every
from ops.preflight.capacity.zone import Chooser
from ops.preflight.finding import Finding, finding
from training_cluster.flags.network import endpoint_prefix
from training_cluster.flags.settings import Settings


def check_endpoints(settings: Settings, choose: Chooser, ec2: Any) -> Iterator[Finding]:
    """Check the endpoints for a new network; in an existing network, users create endpoints themselves."""
    services = settings.interface_endpoints
    if not services or settings.vpc_id:
        return
    zone_name = choose().zone_name
    if zone_name is None:
        return
    region, partition = ec2.meta.region_name, ec2.meta.partition
    names = {f"{endpoint_prefix(each, partition)}.{region}.{each}": each for each in services}
    filters = [
        {"Name": "service-name", "Values": sorted(names)},
        {"Name": "service-type", "Values": ["Interface"]},
    ]
    found = {
        names[each["ServiceName"]]
        for each in every(ec2, "describe_vpc_endpoint_services", "ServiceDetails", Filters=filters)
        if each["ServiceName"] in names and zone_name in each.get("AvailabilityZones", [])
    }
    missing = [each for each in services if each not in found]
    yield finding(
        f"endpoints=private in {zone_name}",
        f"not offered: {', '.join(missing)}" if missing else f"all {len(names)} services",
        good=not missing,
        mend="-c endpoints=none, or -c zone=... of another zone",
    )
