"""Reader of the file of queues: Slurm partitions in addition to the one that the flags describe."""

import re
from collections.abc import Collection, Sequence
from typing import get_args

from pydantic import ValidationError

from training_cluster.catalog.families import load_base
from training_cluster.catalog.family import QUEUE_NAME
from training_cluster.queues.queue import (
    OFF,
    AllocationStrategy,
    Queue,
    QueueEntry,
    ResourceEntry,
    make_queue,
)
from training_cluster.user_yaml import cached_until_changed, explained, read_file_of, unusable

_TAKES = {
    "family": "a family of docs/families.md, or any other of EC2's, such as g4dn",
    "instance_types": "instance types of EC2, such as [g6.12xlarge, g5.12xlarge]",
    "capacity": "ondemand, spot, reservation:cr-..., reservation:ARN of a resource group of reservations, "
    "capacity-block:cr-...",
    "reservation": "cr-..., or the ARN of a resource group of reservations",
    "image": "official, build, an AMI id (ami- and 8 or 17 hex digits)",
    "placement_group": "auto, on, off, the name of an existing group",
    "allocation_strategy": ", ".join(get_args(AllocationStrategy)),
    "nodes": "a whole number from 1 to 4096",
    "min_nodes": "a whole number from 0 to 4096",
    "root_gib": "a whole number of GiB from 40 to 16384",
    "subnet_ids": "ids of subnets of the cluster's VPC, one a zone",
    "partition": "settings of a partition in slurm.conf, such as {MaxTime: 1-00:00:00}",
    "exclusive": "true, false",
    "shared": "true, false",
    "efa": "true, false",
    "compute_resources": "a list of items with name, instance_types or family, nodes, min_nodes",
    "name": "a lower-case letter, then letters, digits and hyphens, 25 at most",
}
_PAGE = "docs/queues.md has all keys and examples"


@cached_until_changed
def read_queues(name: str) -> dict[str, QueueEntry]:
    """Read a file of queues: the queues by name, in the file's order.

    Args:
        name: path of the file, absolute or in the folder of cdk.json.

    Raises:
        ConfigurationError: no such file, no YAML, a key twice, an unknown key, or a wrong value.
    """
    otherwise = "the file has no queues: each is a name with its keys below it"
    content = read_file_of("queues", name, otherwise=otherwise, page=_PAGE)
    found, problems = {}, []
    for queue, keys in content.items():
        if not re.fullmatch(QUEUE_NAME, str(queue)):
            problems.append(f"{queue}: not allowed as a queue's name\n    allowed: {_TAKES['name']}")
        elif not isinstance(keys, dict):
            problems.append(f"{queue}: has no keys; instance_types or family is missing")
        else:
            try:
                found[str(queue)] = QueueEntry.model_validate(keys)
            except ValidationError as error:
                wrong = explained(error, takes=_TAKES, known=_keys_at)
                problems += [f"{'.'.join([str(queue), *place])}: {said}" for place, said in wrong]
    if problems:
        raise unusable(f"queues={name}", problems, page=_PAGE)
    return found


def _keys_at(place: Sequence[str]) -> Collection[str]:
    return (QueueEntry if len(place) == 1 else ResourceEntry).model_fields


def flags_of_file(file: object, queue_name: object) -> dict[str, object]:
    """Return the flags that describe the same nodes as the file's queue of this name; none without one.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    entry = read_queues(file).get(str(queue_name)) if file and isinstance(file, str) else None
    if not entry:
        return {}
    queue = make_queue("", entry)
    flags: dict[str, object] = {
        "instance_type": queue.first.name,
        "nodes": queue.most_nodes,
        "min_nodes": sum(map(queue.least, queue.resources)),
        "capacity": entry.capacity,
        "placement_group": entry.placement_group,
    }
    return flags | ({"image": entry.image} if "image" in entry.model_fields_set else {})


def cpu_queue(instance_type: str) -> Queue | None:
    """Make the queue of `cpu_queue`, for data preparation; None for an unknown instance type."""
    base = load_base().cpu_queue
    entry = QueueEntry.model_construct(
        instance_types=(instance_type,),
        nodes=base.nodes,
        root_gib=base.root_gib,
        # Data preparation runs on single nodes: placed close together they are only harder to get.
        placement_group=OFF,
    )
    return make_queue(base.name, entry) if entry.listed() else None
