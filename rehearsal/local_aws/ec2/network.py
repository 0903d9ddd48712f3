"""EC2's checks of a network, which moto lacks.

Routes and public NAT gateways need an attached internet gateway. A subnet in which a file system has network
interfaces cannot be deleted.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from rehearsal.local_aws.efs import efs
from rehearsal.local_aws.emulators import hooks, moto_actions
from rehearsal.local_aws.emulators.moto_types import ec2
from rehearsal.local_aws.fsx.lustre import fsx


def install() -> None:
    """Let moto refuse what EC2 refuses."""
    hooks.replace("CREATE_ROUTE", _check_route)
    hooks.replace("CREATE_NAT_GATEWAY", _check_nat_gateway)
    hooks.replace("DELETE_SUBNET", _check_subnet)


def _check_route(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create_route(self: Any, route_table_id: str, *arguments: Any, **options: Any) -> Any:
        gateway_id = options.get("gateway_id")
        table, gateway = self.get_route_table(route_table_id), self.internet_gateways.get(gateway_id)
        if gateway and (gateway.vpc is None or gateway.vpc.id != table.vpc_id):
            words = (
                f"route table {route_table_id} and network gateway {gateway_id} belong to different networks"
            )
            raise moto_actions.error("InvalidParameterValue", words)
        return original(self, route_table_id, *arguments, **options)

    return create_route


def _check_nat_gateway(original: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse at once what EC2 accepts and fails later; CloudFormation sees the same failure."""

    @functools.wraps(original)
    def create_nat_gateway(self: Any, subnet_id: str, *arguments: Any, **options: Any) -> Any:
        vpc_id = self.get_subnet(subnet_id).vpc_id
        attached = any(each.vpc and each.vpc.id == vpc_id for each in self.internet_gateways.values())
        if options.get("connectivity_type") != "private" and not attached:
            words = f"Network {vpc_id} has no Internet gateway attached"
            raise moto_actions.error("Gateway.NotAttached", words)
        return original(self, subnet_id, *arguments, **options)

    return create_nat_gateway


def _check_subnet(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def delete_subnet(self: Any, subnet_id: str) -> Any:
        if subnet_id in _used():
            words = f"The subnet '{subnet_id}' has dependencies and cannot be deleted."
            raise moto_actions.error("DependencyViolation", words)
        return original(self, subnet_id)

    return delete_subnet


def _used() -> Iterator[str]:
    """Yield the subnet of each network interface of a file system."""
    for system in fsx().file_systems.values():
        for interface in system.network_interface_ids:
            if interface in ec2().enis:
                yield ec2().enis[interface].subnet.id
    for target in efs().mount_targets_by_id.values():
        yield target.subnet_id
