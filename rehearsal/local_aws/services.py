"""The corrections of the emulators, installed before they answer."""

from rehearsal.local_aws import budgets, cloudwatch, databases, efs, iam, quotas, secrets
from rehearsal.local_aws.cloudformation import custom_resources
from rehearsal.local_aws.cloudformation import engine as cloudformation
from rehearsal.local_aws.ec2 import (
    capacity_blocks,
    capacity_reservations,
    images,
    load_balancers,
    network,
    placement_groups,
    resource_types,
    scaling_groups,
)
from rehearsal.local_aws.emulators import moto_services
from rehearsal.local_aws.fsx import data_repositories, lustre, volumes
from rehearsal.local_aws.image_builder import resources as image_builder

# The order does not matter: each corrects other types and actions.
_MODULES = (
    budgets,
    capacity_blocks,
    capacity_reservations,
    cloudformation,
    cloudwatch,
    custom_resources,
    data_repositories,
    databases,
    efs,
    iam,
    image_builder,
    images,
    load_balancers,
    lustre,
    moto_services,
    network,
    placement_groups,
    quotas,
    resource_types,
    scaling_groups,
    secrets,
    volumes,
)


def install() -> None:
    """Install all corrections, once."""
    for module in _MODULES:
        module.install()
