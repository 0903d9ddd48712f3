"""The corrections of the emulators, installed before they answer."""

from rehearsal.local_aws import alarms, budgets, databases, efs, log_groups, quotas, role_boundaries, secrets
from rehearsal.local_aws.cloudformation import custom_resources, exports
from rehearsal.local_aws.cloudformation import engine as cloudformation
from rehearsal.local_aws.ec2 import (
    capacity_blocks,
    capacity_reservations,
    images,
    instance_profiles,
    load_balancers,
    network,
    placement_groups,
    resource_types,
    scaling_groups,
)
from rehearsal.local_aws.emulators import moto_services
from rehearsal.local_aws.fsx import data_repository_associations as data_repositories
from rehearsal.local_aws.fsx import data_repository_tasks, lustre
from rehearsal.local_aws.image_builder import resources as image_builder

# The order does not matter: each corrects other types and actions.
_MODULES = (
    alarms,
    budgets,
    capacity_blocks,
    capacity_reservations,
    cloudformation,
    custom_resources,
    data_repositories,
    data_repository_tasks,
    databases,
    efs,
    exports,
    image_builder,
    images,
    instance_profiles,
    load_balancers,
    log_groups,
    lustre,
    moto_services,
    network,
    placement_groups,
    quotas,
    resource_types,
    role_boundaries,
    scaling_groups,
    secrets,
)


def install() -> None:
    """Install all corrections, once."""
    for module in _MODULES:
        module.install()
