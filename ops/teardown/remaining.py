"""The resources of Training Cluster that outlive their stacks, for existing and for deleted stacks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ops.account.session import ClientOf, every
from ops.account.stacks import FOUNDATIONS, Resource, Stack, cluster_stack_name
from ops.parts import Parts
from ops.teardown.accounting import database_addresses, database_charge, is_database, read_accounting
from ops.teardown.images import RemainingImages, image_charge, read_images
from ops.teardown.storage import (
    GROUP_PREFIX,
    Efs,
    Lustre,
    buckets_of_region,
    efs_charge,
    lustre_charge,
    our_buckets,
    read_efs,
    read_lustre,
    tagged_groups,
)
from ops.teardown.tagged import is_our_log_group
from training_cluster.catalog import charges
from training_cluster.catalog.charges import Charge
from training_cluster.catalog.families import load_base
from training_cluster.catalog.prices import Prices
from training_cluster.stack_names import (
    ACCOUNTING_STACK,
    CLUSTER_STACK,
    DEFAULT_CLUSTER,
    FORMER_DEFAULT,
    IMAGE_STACKS,
    NETWORK_STACK,
    STORAGE_STACK,
    progress_parameter,
)

PCLUSTER_FUNCTIONS = "/aws/lambda/pcluster-"
PCLUSTER_BUCKET = re.compile(r"parallelcluster-[0-9a-f]{16}-v1-do-not-delete")


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """Resources of Training Cluster that no stack deletes."""

    lustre: tuple[Lustre, ...] = ()
    efs: tuple[Efs, ...] = ()
    buckets: tuple[str, ...] = ()
    accounting: tuple[Resource, ...] = ()
    """Resources of AccountingStack."""
    databases: tuple[str, ...] = ()
    """Host and port of each database, if AccountingStack is deleted."""
    images: RemainingImages = field(default_factory=RemainingImages)
    groups: tuple[str, ...] = ()
    """Security groups of the file systems."""
    log_groups: tuple[str, ...] = ()
    """Log groups of the cluster, and of our stacks."""
    pcluster_log_groups: tuple[str, ...] = ()
    """Log groups of ParallelCluster's functions, which do not name their cluster."""
    parameters: tuple[str, ...] = ()
    pcluster_buckets: tuple[str, ...] = ()


def read_remaining(stacks: dict[str, Stack], cluster_name: str, client: ClientOf, parts: Parts) -> Remaining:
    """Read the resources from each service; `parts` records those without an answer."""
    storage, accounting = stacks.get(STORAGE_STACK), stacks.get(ACCOUNTING_STACK)
    ids = {each.physical_id for each in storage.resources if each.kept} if storage else set()
    goes = {each.physical_id for each in storage.resources if not each.kept} if storage else set()
    buckets = parts.gather("buckets", lambda: buckets_of_region(client("s3")))
    groups = dict(parts.gather("security groups", lambda: tagged_groups(client("ec2")).items()))
    kept = (
        {each.physical_id for each in storage.of_type("AWS::EC2::SecurityGroup")} & ids if storage else set()
    )
    stackless = {id_ for id_, name in groups.items() if name.startswith(GROUP_PREFIX)}
    return Remaining(
        lustre=parts.gather("Lustre", lambda: read_lustre(client("fsx"), ids)),
        efs=parts.gather("EFS", lambda: read_efs(client("efs"), ids, goes)),
        buckets=parts.gather("tags of buckets", lambda: our_buckets(buckets, client("s3"), ids)),
        accounting=tuple(each for each in accounting.resources if each.kept)
        if accounting
        else read_accounting(client, groups, parts),
        databases=() if accounting else parts.gather("databases", lambda: database_addresses(client("rds"))),
        images=read_images(client, parts),
        groups=tuple(sorted(kept | stackless)),
        log_groups=parts.gather("logs", lambda: _log_groups(client("logs"), cluster_name, stacks)),
        pcluster_log_groups=parts.gather("logs", lambda: _named(client("logs"), PCLUSTER_FUNCTIONS)),
        parameters=parts.gather("parameters", lambda: _parameters(client("ssm"), cluster_name)),
        pcluster_buckets=tuple(name for name in buckets if PCLUSTER_BUCKET.fullmatch(name)),
    )


def _log_groups(logs: Any, cluster_name: str, stacks: dict[str, Stack]) -> Iterator[str]:
    own = cluster_stack_name(cluster_name)
    # "TrainingClusterStack-" is a prefix of other clusters' names, too.
    others = tuple(f"{name}-" for name in stacks if name.startswith(f"{own}-"))
    # Two names have the one stack, and the other may be somebody else's cluster: it is known by its tag.
    both = (DEFAULT_CLUSTER, FORMER_DEFAULT) if own == CLUSTER_STACK else ()
    for name in dict.fromkeys((cluster_name, *both)):
        with_time = re.compile(rf"/aws/parallelcluster/{re.escape(name)}-\d{{12}}")
        for group, arn in _described(logs, f"/aws/parallelcluster/{name}-"):
            if with_time.fullmatch(group) and (name == cluster_name or is_our_log_group(arn, logs, of=name)):
                yield group
    for prefix in (f"{own}-", f"/aws/lambda/{own}-"):
        for name in _named(logs, prefix):
            if not name.removeprefix("/aws/lambda/").startswith(others):
                yield name
    for start in (*(f"{name}-" for name in FOUNDATIONS), IMAGE_STACKS):
        ours = [each for name, each in stacks.items() if f"{name}-".startswith(start)]
        made = {log for each in ours for log in _log_groups_of(each)}
        for prefix in (start, f"/aws/lambda/{start}"):
            for name, arn in _described(logs, prefix):
                if name in made or is_our_log_group(arn, logs):
                    yield name


def _log_groups_of(stack: Stack) -> Iterator[str]:
    """Return the log groups that Lambda itself created for a stack's functions, without a tag."""
    return (f"/aws/lambda/{each.physical_id}" for each in stack.of_type("AWS::Lambda::Function"))


def _named(logs: Any, prefix: str) -> Iterator[str]:
    return (name for name, _ in _described(logs, prefix))


def _described(logs: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Return name and ARN of each log group with a prefix."""
    groups = every(logs, "describe_log_groups", "logGroups", logGroupNamePrefix=prefix)
    return ((each["logGroupName"], each["arn"]) for each in groups)


def _parameters(ssm: Any, cluster_name: str) -> Iterator[str]:
    path = progress_parameter(cluster_stack_name(cluster_name)).rpartition("/")[0]
    found = every(ssm, "get_parameters_by_path", "Parameters", Path=path, Recursive=True)
    return (each["Name"] for each in found)


def read_costs(stacks: dict[str, Stack], remaining: Remaining, client: ClientOf) -> tuple[Charge, ...]:
    """Return the remaining resources with their cost, the most expensive first. Raises botocore's errors."""
    prices = load_base().prices
    note = f"{prices.s3_gb_month.usd} for each GB in it, old versions too"
    found = [
        *_network(stacks.get(NETWORK_STACK), client("ec2"), prices),
        *(lustre_charge(each, prices) for each in remaining.lustre),
        *(efs_charge(each, prices) for each in remaining.efs),
        *(Charge(what=f"{name}  bucket", usd_per_month=None, note=note) for name in remaining.buckets),
        *(database_charge(each, prices) for each in remaining.accounting if is_database(each)),
        *(image_charge(each, prices) for each in remaining.images.amis),
    ]
    return charges.dearest_first(found)


def _network(stack: Stack | None, ec2: Any, prices: Prices) -> Iterator[Charge]:
    if stack is None:
        return
    for nat in stack.of_type("AWS::EC2::NatGateway"):
        yield charges.nat_gateway(prices, f"{nat.physical_id}  NAT gateway and its address")
    if ids := [each.physical_id for each in stack.of_type("AWS::EC2::VPCEndpoint")]:
        answer = ec2.describe_vpc_endpoints(VpcEndpointIds=ids)["VpcEndpoints"]
        zones = sum(
            len(each.get("SubnetIds", [])) for each in answer if each["VpcEndpointType"] == "Interface"
        )
        if zones:
            yield charges.interface_endpoints(prices, zones)
