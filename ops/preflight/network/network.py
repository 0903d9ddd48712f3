"""Checks of an existing network: VPC, subnets, addresses."""

from collections.abc import Iterator
from typing import Any

from ops.preflight.existing_network import ExistingNetwork, Subnet
from ops.preflight.finding import Finding, finding
from ops.preflight.network.routes import WORLD, check_egress, default_route, route_table, s3_endpoint
from training_cluster.cluster.fleet import RESERVED_ADDRESSES, addresses_in
from training_cluster.cluster.nodes import Rendered
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy


def check_network(settings: Settings, existing: ExistingNetwork, account: str, ec2: Any) -> Iterator[Finding]:
    """Check an existing network; return nothing for a network that the app creates.

    Args:
        account: number of the account.
    """
    if not settings.vpc_id:
        return
    vpcs = ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [settings.vpc_id]}])["Vpcs"]
    here = ec2.meta.region_name
    if not vpcs:
        yield Finding(
            check="VPC",
            found=f"no {settings.vpc_id} in {here}",
            verdict="problem",
            mend="aws ec2 describe-vpcs, then -c vpc_id=...",
        )
        return
    yield from _dns(settings.vpc_id, ec2)
    config = config_before_deploy(settings)
    subnets = {"private_subnet_id": existing.private}
    if settings.public_subnet_id:
        subnets = {"public_subnet_id": existing.public, **subnets}
    for flag, subnet in subnets.items():
        yield _belongs(flag, subnet, settings)
        if subnet:
            yield _not_shared(flag, subnet, account)
    if settings.public_subnet_id and existing.public and existing.private:
        yield _same_zone(existing.public, existing.private)
    if settings.public_access == "on" and existing.public:
        yield from _public(existing.public, config, ec2)
    if existing.private:
        yield from _private(existing.private, config, ec2)


def _dns(vpc_id: str, ec2: Any) -> Iterator[Finding]:
    # ParallelCluster's SubnetsValidator refuses a VPC that lacks one of them.
    for attribute, option in (("DnsSupport", "dns-support"), ("DnsHostnames", "dns-hostnames")):
        key = f"Enable{attribute}"
        on = ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute=f"enable{attribute}")[key]["Value"]
        yield finding(
            f"VPC: {option}",
            "on" if on else "off",
            good=on,
            mend=f"aws ec2 modify-vpc-attribute --vpc-id {vpc_id} --enable-{option}",
        )


def _belongs(flag: str, subnet: Subnet | None, settings: Settings) -> Finding:
    id_, vpc_id = getattr(settings, flag), settings.vpc_id
    found = f"in {subnet['VpcId']}, {subnet['AvailabilityZoneId']}" if subnet else "missing"
    return finding(
        f"{flag} {id_}",
        found,
        good=subnet is not None and subnet["VpcId"] == vpc_id,
        mend=f"aws ec2 describe-subnets --filters Name=vpc-id,Values={vpc_id}, then -c {flag}=...",
    )


def _not_shared(flag: str, subnet: Subnet, account: str) -> Finding:
    # The head node's role may start instances only in subnets of its own account (pcluster 3.16.1,
    # cdk_builder_utils.py), and Route 53 creates no private zone in another account's VPC.
    owner = subnet["OwnerId"]
    return finding(
        f"{flag}: owner",
        "this account" if owner == account else f"account {owner}, which shares it with this one",
        good=owner == account,
        mend=f"-c {flag}=... of one of account {account}; ParallelCluster starts no nodes in a shared one",
    )


def _same_zone(public: Subnet, private: Subnet) -> Finding:
    zones = [subnet["AvailabilityZoneId"] for subnet in (public, private)]
    return finding(
        "both subnets in one zone",
        " and ".join(dict.fromkeys(zones)),
        good=zones[0] == zones[1],
        mend=f"-c public_subnet_id=... of a public subnet in {zones[1]}",
    )


def _public(subnet: Subnet, config: Rendered, ec2: Any) -> Iterator[Finding]:
    id_, route = subnet["SubnetId"], default_route(route_table(subnet, ec2))
    gateway = str((route or {}).get("GatewayId", ""))
    yield finding(
        "public subnet: route to the internet",
        gateway or "no default route",
        good=gateway.startswith("igw-"),
        mend=f"-c public_subnet_id=... of a subnet whose {WORLD} goes to an internet gateway; or none: "
        "-c public_access=off",
    )
    on = bool(subnet.get("MapPublicIpOnLaunch"))
    yield finding(
        "public subnet: gives public addresses",
        "yes" if on else "no: the head node could not reach the internet",
        good=on,
        mend=f"aws ec2 modify-subnet-attribute --subnet-id {id_} --map-public-ip-on-launch",
    )
    yield _addresses("public", subnet, addresses_in(id_, config))


def _private(subnet: Subnet, config: Rendered, ec2: Any) -> Iterator[Finding]:
    table = route_table(subnet, ec2)
    yield check_egress(table, config)
    yield s3_endpoint(table, subnet["VpcId"], ec2)
    yield _addresses("private", subnet, addresses_in(subnet["SubnetId"], config) + RESERVED_ADDRESSES)


def _addresses(name: str, subnet: Subnet, needed: int) -> Finding:
    free = subnet["AvailableIpAddressCount"]
    return finding(
        f"{name} subnet: free addresses",
        f"{free}, of which a full cluster takes {needed}",
        good=free >= needed,
        mend=f"-c {name}_subnet_id=... of a larger subnet"
        + (", or fewer: -c nodes=..." if name == "private" else ""),
    )
