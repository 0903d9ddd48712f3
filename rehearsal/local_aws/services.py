"""Everything that is put into the emulators before they answer."""

from __future__ import annotations

from rehearsal.local_aws import (
    alarms,
    budgets,
    capacity_blocks,
    capacity_reservations,
    cloudformation,
    custom_resources,
    data_repositories,
    databases,
    efs,
    exports,
    image_builder,
    images,
    instance_profiles,
    load_balancers,
    lustre,
    moto_services,
    placement_groups,
    quotas,
    resource_types,
    scaling_groups,
    secrets,
    volume_keys,
)

# Their order does not matter: each corrects types and actions of its own.
_MODULES = (
    alarms,
    budgets,
    capacity_blocks,
    capacity_reservations,
    cloudformation,
    custom_resources,
    data_repositories,
    databases,
    efs,
    exports,
    image_builder,
    images,
    instance_profiles,
    load_balancers,
    lustre,
    moto_services,
    placement_groups,
    quotas,
    resource_types,
    scaling_groups,
    secrets,
    volume_keys,
)


def install() -> None:
    """Install them all, once."""
    for module in _MODULES:
        module.install()
