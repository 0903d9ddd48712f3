"""Checks of the subnets that the file of queues names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ops.preflight.existing_network import ExistingNetwork, read_subnet
from ops.preflight.finding import Finding, finding
from ops.preflight.network.routes import check_egress, route_table
from training_cluster.flags.settings import Settings
from training_cluster.queues.queue import Queue


def check_queue_subnets(settings: Settings, existing: ExistingNetwork, ec2: Any) -> Iterator[Finding]:
    """Check each subnet: in the cluster's VPC, with a way to the internet and addresses for its queue."""
    for queue in settings.all_queues:
        for id_ in queue.subnet_ids:
            yield from _check(id_, queue, settings, existing, ec2)


def _check(
    id_: str, queue: Queue, settings: Settings, existing: ExistingNetwork, ec2: Any
) -> Iterator[Finding]:
    name, subnet = f"queue {queue.name}: {id_}", read_subnet(id_, ec2)
    place = f"subnet_ids of {queue.name} in {settings.queues}"
    yield finding(
        name,
        f"in {subnet['VpcId']}, {subnet['AvailabilityZoneId']}" if subnet else "missing",
        good=subnet is not None and existing.vpc_id in {None, subnet["VpcId"]},
        mend=f"{place}: aws ec2 describe-subnets --filters Name=vpc-id,Values={existing.vpc_id or '...'}",
    )
    if subnet is None:
        return
    yield check_egress(route_table(subnet, ec2), f"{name}: route to the internet", f"{place}: one")
    # Its nodes may start in any of its subnets.
    free, needed = subnet["AvailableIpAddressCount"], math.ceil(queue.addresses / len(queue.subnet_ids))
    yield finding(
        f"{name}: free addresses",
        f"{free}, of which the full queue takes {needed}",
        good=free >= needed,
        otherwise="warning",
        mend=f"{place}: a larger one, or fewer nodes",
    )
