"""Reads the plan from the account, and renders it for people."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.image_stacks import is_image_stack
from ops.account.session import ClientOf, every
from ops.account.stacks import (
    FOUNDATIONS,
    Stack,
    cluster_stack_name,
    deployed_name,
    find_stacks,
    stack_status,
)
from ops.parts import Parts
from ops.plan.deployed import read_cluster_config
from ops.teardown.adopt import adopt
from ops.teardown.commands import steps
from ops.teardown.images import images_that_wait
from ops.teardown.remaining import Remaining, read_costs, read_remaining
from ops.teardown.step import Step
from training_cluster.catalog.charges import Charge, render_charges
from training_cluster.catalog.families import load_base
from training_cluster.overrides.storage import RETAIN, ManagedStorage, managed_storage
from training_cluster.stack_names import cluster_of_stack, destroy_command

_NODES = {"HeadNode": "head node", "LoginNode": "login node", "Compute": "compute node"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Existing resources, and the commands that delete them."""

    cluster_name: str
    region: str
    stacks: dict[str, Stack]
    foreign_stacks: tuple[str, ...]
    """Stacks of others that are named like ours; the plan omits them."""
    pcluster_status: str | None
    """Status of ParallelCluster's own stack for the cluster."""
    nodes: Counter[str]
    """Number of the cluster's instances, by kind."""
    remaining: Remaining
    costs: tuple[Charge, ...]
    storage: tuple[ManagedStorage, ...]
    """Storage that ParallelCluster made with the cluster, by overrides."""
    steps: tuple[Step, ...]
    unanswered: tuple[str, ...] = ()
    """A line for each part without an answer, with the reason."""

    @property
    def cluster(self) -> Stack | None:
        """TrainingClusterStack of the cluster."""
        return self.stacks.get(cluster_stack_name(self.cluster_name))


def read_plan(cluster_name: str, client: ClientOf) -> Plan:
    """Read the account, without changing anything.

    Raises:
        ConfigurationError: no cluster can have this name.
        BotoCoreError, ClientError: CloudFormation does not answer.
    """
    cluster_name = deployed_name(cluster_name, client)
    cloudformation = client("cloudformation")
    stacks, foreign = find_stacks(cloudformation)
    parts = Parts()
    remaining = read_remaining(stacks, cluster_name, client, parts)
    nodes = parts.ask("nodes", lambda: _nodes(cluster_name, client("ec2")))
    costs = parts.gather("costs of the network", lambda: read_costs(stacks, remaining, client))
    config = parts.ask("storage of the cluster", lambda: read_cluster_config(cluster_name, client))
    return Plan(
        cluster_name=cluster_name,
        region=cloudformation.meta.region_name,
        stacks=stacks,
        foreign_stacks=tuple(foreign),
        pcluster_status=stack_status(cluster_name, cloudformation),
        nodes=nodes or Counter(),
        remaining=remaining,
        costs=costs,
        storage=tuple(managed_storage(config or {})),
        steps=tuple(steps(stacks, remaining, cluster_name)),
        unanswered=parts.unanswered(),
    )


def _nodes(cluster_name: str, ec2: Any) -> Counter[str]:
    filters = [
        {"Name": "tag:parallelcluster:cluster-name", "Values": [cluster_name]},
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
    ]
    found: Counter[str] = Counter()
    for instance in every(ec2, "describe_instances", "Reservations", "Instances", Filters=filters):
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        found[_NODES.get(tags.get("parallelcluster:node-type", ""), "instance")] += 1
    return found


def render_plan(plan: Plan) -> Iterator[str]:
    """Yield the lines for a terminal; only commands are longer than the usual width."""
    for name in plan.foreign_stacks:
        yield f"{name} is not Training Cluster's, in spite of its name, and is omitted."
    if plan.unanswered:
        yield f"THIS PLAN IS NOT COMPLETE. These parts are unknown in {plan.region}:"
        yield from (f"  {line}" for line in plan.unanswered)
        yield ""
    if not plan.steps:
        yield f"There is nothing {'else ' if plan.unanswered else ''}of Training Cluster in {plan.region}."
        return
    yield from _goes(plan)
    yield ""
    yield from _stays(plan)
    yield from adopt(plan.remaining, plan.stacks, plan.cluster_name)
    yield ""
    yield "To delete everything, in this order; none of it was done:"
    yield "In zsh, first: setopt interactive_comments"
    # AWS CLI v2 opens a pager for its output, which would read the pasted lines below as its own input.
    yield f"export AWS_REGION={plan.region} AWS_DEFAULT_REGION={plan.region} AWS_PAGER="
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield f"# {number}. {step.title}"
        if step.is_data_lost:
            yield "# THE DATA IS GONE AFTER THIS"
        yield from step.commands
    yield from images_that_wait(plan.remaining.images, plan.cluster_name)
    yield ""
    yield "Not included: CDKToolkit and its bucket cdk-*, which serve all of your CDK apps, and resources of"
    yield "your own that you gave by id."


def _goes(plan: Plan) -> Iterator[str]:
    name, stack = plan.cluster_name, plan.cluster
    if stack is None and plan.pcluster_status is None:
        yield f"There is no cluster {name} here."
    else:
        yield f"{destroy_command(name)} takes the cluster {name}, and nothing else:"
        if stack:
            yield f"  {stack.name}  {stack.status}"
        if plan.pcluster_status:
            yield f"  {name}  {plan.pcluster_status}  ParallelCluster's own stack"
        if plan.nodes:
            counted = ", ".join(f"{count} {kind}(s)" for kind, count in plan.nodes.items())
            yield f"  {counted}: their jobs end"
        for key in stack.of_type("AWS::EC2::KeyPair") if stack else ():
            yield f"  the key pair {key.physical_id}, and its private half in Parameter Store"
        for each in plan.storage:
            if each.deletion_policy != RETAIN:
                becomes = (
                    "its data become a snapshot"
                    if each.deletion_policy == "Snapshot"
                    else "ITS DATA ARE GONE"
                )
                yield f"  {_named(each)}: {becomes}: its DeletionPolicy is {each.deletion_policy}"
    others = [
        (other.name, other.status)
        for other in plan.stacks.values()
        if cluster_of_stack(other.name) and other != stack
    ]
    for other, status in others:
        yield f"Another cluster uses the same network and storage: {other}  {status}"


def _named(storage: ManagedStorage) -> str:
    return f"{storage.kind} {storage.name} at {storage.mount_dir}, which the cluster made"


def _stays(plan: Plan) -> Iterator[str]:
    prices = load_base().prices
    month = sum(cost.usd for cost in plan.costs)
    dates = f"list prices of {prices.region}; your region may differ"
    yield f"What stays, and costs about {month:,.0f} USD a month ({dates}):"
    for name in FOUNDATIONS:
        if stack := plan.stacks.get(name):
            protected = ", termination protection on" if stack.is_protected else ""
            yield f"  {name}  {stack.status}{protected}"
    for name in filter(is_image_stack, plan.stacks):
        yield f"  {name}  {plan.stacks[name].status}, free but for what its builds take"
    for each in plan.storage:
        if each.deletion_policy == RETAIN:
            yield f"  {_named(each)}: yours when the cluster is gone, and billed until you delete it"
    yield from render_charges(plan.costs)
