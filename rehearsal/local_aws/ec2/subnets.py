"""EC2's check of a subnet's deletion, which moto lacks: file systems keep their network interfaces in it."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from rehearsal.local_aws.efs import efs
from rehearsal.local_aws.emulators import hooks, moto_actions, moto_hooks
from rehearsal.local_aws.emulators.moto_types import ec2
from rehearsal.local_aws.fsx.lustre import fsx


def install() -> None:
    """Refuse to delete a subnet in which a Lustre file system or a mount target of EFS is."""
    hooks.replace(moto_hooks.DELETE_SUBNET, _check)


def _check(original: Callable[..., Any]) -> Callable[..., Any]:
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
