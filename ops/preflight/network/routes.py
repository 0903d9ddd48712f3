"""Checks of the routes of an existing network, and of the endpoints of a new one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ops.account.session import every
from ops.preflight.capacity.zone import Chooser
from ops.preflight.existing_network import ExistingNetwork, Subnet
from ops.preflight.finding import Finding, finding
from training_cluster.catalog.families import load_base
from training_cluster.cluster.nodes import Rendered
from training_cluster.flags.network import endpoint_prefix
from training_cluster.flags.settings import Settings

Table = Mapping[str, Any]
Route = Mapping[str, Any]
"""Route as EC2 describes it."""
WORLD = "0.0.0.0/0"
# EC2 lists deleted endpoints for a while.
_ENDPOINT_EXISTS = ("available", "pending")


def route_table(subnet: Subnet, ec2: Any) -> Table | None:
    """Return the subnet's own route table, else the VPC's main one."""
    for filters in (
        {"association.subnet-id": subnet["SubnetId"]},
        {"vpc-id": subnet["VpcId"], "association.main": "true"},
    ):
        asked = [{"Name": name, "Values": [value]} for name, value in filters.items()]
        found: list[Table] = ec2.describe_route_tables(Filters=asked)["RouteTables"]
        if found:
            return found[0]
    return None


def default_route(table: Table | None) -> Route | None:
    """Return the default route, unless it is a blackhole."""
    routes = table["Routes"] if table else []
    return next(
        (
            route
            for route in routes
            if route.get("DestinationCidrBlock") == WORLD and route.get("State") != "blackhole"
        ),
        None,
    )


def check_egress(
    table: Table | None,
    config: Rendered,
    check: str = "private subnet: route to the internet",
    instead: str = "-c private_subnet_id=... of a subnet",
) -> Finding:
    """Check that a subnet of compute nodes reaches the internet, for packages and AWS APIs.

    Args:
        config: the final cluster config, whose Dns.DisableManagedDns is for a network without internet:
            Route 53 has no endpoint.
    """
    route, dns = default_route(table), config["Scheduling"]["SlurmSettings"].get("Dns") or {}
    if route is None and dns.get("DisableManagedDns"):
        limits = "docs/how-to/network.md lists the endpoints that it needs, and what does not work there"
        return Finding(check=check, found="none, as the overrides intend", verdict="warning", mend=limits)
    if route is None:
        return Finding(
            check=check,
            found="no default route",
            verdict="problem",
            mend=f"aws ec2 create-route --destination-cidr-block {WORLD} --nat-gateway-id nat-... "
            f"--route-table-id {table['RouteTableId'] if table else 'rtb-...'}",
        )
    if nat := route.get("NatGatewayId"):
        return Finding(check=check, found=nat)
    if str(route.get("GatewayId", "")).startswith("igw-"):
        return Finding(
            check=check,
            found=f"{route['GatewayId']}, which compute nodes without public addresses cannot use",
            verdict="problem",
            mend=f"{instead} whose {WORLD} goes to a NAT gateway",
        )
    other = next((str(route[key]) for key in sorted(route) if key.endswith("Id")), "something else")
    return Finding(
        check=check,
        found=f"{other}: not checked if it leads to the internet",
        verdict="warning",
        mend="from an instance in it: curl -sI https://aws.amazon.com",
    )


def s3_endpoint(table: Table | None, vpc_id: str, ec2: Any) -> Finding:
    """Check that traffic to S3 avoids the NAT gateway, which is billed by the GB."""
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "vpc-endpoint-type", "Values": ["Gateway"]}]
    endpoints = ec2.describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]
    table_id, region = table["RouteTableId"] if table else "rtb-...", ec2.meta.region_name
    found = [
        each["VpcEndpointId"]
        for each in endpoints
        if each["ServiceName"].endswith(".s3")
        and table_id in each.get("RouteTableIds", [])
        and each["State"].lower() in _ENDPOINT_EXISTS
    ]
    gb = load_base().prices.nat_gateway_gb.usd
    return finding(
        "private subnet: S3 gateway endpoint",
        found[0] if found else f"none: data sets and checkpoints go through NAT, about {gb} USD per GB",
        good=bool(found),
        otherwise="warning",
        mend=f"aws ec2 create-vpc-endpoint --vpc-id {vpc_id} --service-name com.amazonaws.{region}.s3 "
        f"--route-table-ids {table_id}",
    )


def check_endpoints(settings: Settings, choose: Chooser, ec2: Any) -> Iterator[Finding]:
    """Check that AWS offers the endpoints of endpoints=private; in their own network, users create them."""
    services = settings.interface_endpoints
    if not services or settings.vpc_id or (zone_name := choose().zone_name) is None:
        return
    offered = _zones_with_endpoints(services, ec2)
    missing = [each for each in services if zone_name not in offered.get(each, ())]
    yield finding(
        f"endpoints=private in {zone_name}",
        f"not offered: {', '.join(missing)}" if missing else f"all {len(services)} services",
        good=not missing,
        mend="-c endpoints=none, or -c zone=... of another zone",
    )


def check_storage_zone(
    settings: Settings, existing: ExistingNetwork, choose: Chooser, ec2: Any
) -> Iterator[Finding]:
    """Warn of a new network's zone without an endpoint of FSx or EFS.

    No call of AWS tells in which zones file systems are offered; a service has an endpoint in its zones
    (EC2's API reference, ServiceDetail).
    """
    if settings.vpc_id or existing.zone_id or (zone_name := choose().zone_name) is None:
        return
    given = {"fsx": settings.fsx_id, "elasticfilesystem": settings.efs_id}
    offered = _zones_with_endpoints(given, ec2).items()
    if lacking := [each for each, zones in offered if not given[each] and zone_name not in zones]:
        yield Finding(
            check=f"zone {zone_name}: file systems",
            found=f"no endpoint of {' and '.join(lacking)} there: perhaps no file system either",
            verdict="warning",
            mend='-c zone=... of another zone; docs/how-to/network.md, "The zone", if the deploy fails',
        )


def _zones_with_endpoints(services: Iterable[str], ec2: Any) -> dict[str, list[str]]:
    """Return the names of the zones in which a service has an interface endpoint, for those that have any."""
    region, partition = ec2.meta.region_name, ec2.meta.partition
    names = {f"{endpoint_prefix(each, partition)}.{region}.{each}": each for each in services}
    zones: dict[str, list[str]] = {}
    # Without filters, at which the local AWS fails: it is one call in any case.
    for each in every(ec2, "describe_vpc_endpoint_services", "ServiceDetails"):
        if name := names.get(each["ServiceName"]):
            zones.setdefault(name, []).extend(each.get("AvailabilityZones", []))
    return zones
