"""All checks, in the order of the report."""

from __future__ import annotations

from ops.preflight.access import check_access
from ops.preflight.account import check_account
from ops.preflight.finding import Finding
from ops.preflight.image import check_image
from ops.preflight.instance_types import check_instance_types
from ops.preflight.network import check_network
from ops.preflight.place import read_place
from ops.preflight.security_groups import check_node_group
from ops.preflight.storage import check_storage
from ops.session import ClientOf
from training_cluster.settings import Settings


def run_checks(settings: Settings, client: ClientOf) -> list[Finding]:
    """Ask the account; changes nothing. Raises botocore's errors."""
    ec2, place = client("ec2"), read_place(settings, client)
    return [
        *check_account(settings, place, ec2.meta.region_name),
        *check_network(settings, place, ec2),
        *check_node_group(settings, ec2),
        *check_instance_types(settings, place, ec2),
        *check_storage(settings, place, client),
        *check_image(settings, place, client),
        *check_access(settings, ec2),
    ]
