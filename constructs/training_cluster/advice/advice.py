"""Advice about valid flags before a deploy: `cdk synth` shows it as warnings and notes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from training_cluster.advice.idle_cost import idle_cost, render_idle_cost
from training_cluster.advice.spot_role import CREATE_SPOT_ROLE, SPOT_ROLE
from training_cluster.catalog.families import head_node_size, load_base
from training_cluster.catalog.family import Family
from training_cluster.cluster.fleet import compute_nodes
from training_cluster.cluster.lustre_client import lustre_interfaces, usual_interfaces
from training_cluster.cluster.nodes import Rendered, login_pools
from training_cluster.flags.file import replaced_flags
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_parameter, image_stack_name
from training_cluster.overrides.nodes import own_roles
from training_cluster.sizing import (
    LONG_START_S,
    about_expected,
    about_head_node,
    about_image,
    about_saves,
    expected_saves,
    lustre_of,
    readers_of,
    sufficient_flags,
)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A warning or a note about the settings."""

    id: str
    """Id by which CDK lets people acknowledge a warning."""
    text: str
    warns: bool = True
    """False for a note, which only repeats a choice."""


def advice(settings: Settings, config: Rendered) -> list[Advice]:
    """Return all advice about the flags and the final cluster config."""
    of_flags = [each for find in _FINDERS for each in find(settings)]
    return of_flags + [each for find in _OF_CONFIG for each in find(settings, config)]


def _flags_file(settings: Settings) -> Iterator[Advice]:
    for flag, value, used in replaced_flags(settings):
        yield Advice(
            id="flags-file",
            text=f"{flag}={used} of the command line or of cdk.json is used, not {value} of {settings.flags}",
            warns=False,
        )


def _image(settings: Settings) -> Iterator[Advice]:
    family = settings.family_facts
    if settings.node_image == "build":
        why = f" ({family.official_image_refused})" if family.official_image_refused else ""
        recipe = load_base().image_recipes[family.image_recipe]
        baked = ", ".join(settings.node_workloads) or "none"
        yield Advice(
            id="image-build",
            text=f"image=build{why}: {family.name} takes the recipe {family.image_recipe}: "
            f"{recipe.description}. {image_stack_name(settings)} builds it, about {recipe.usual_min} minutes "
            f"at the first deploy and whenever its content changes, with the environments of: {baked}. All "
            "clusters of this recipe and os share it, so give each the same workloads. The AMI's id is in "
            f"the SSM parameter {image_parameter(settings)}. What it will hold: trainctl image-plan "
            f"{family.name}. To use your own AMI: -c image=ami-...",
            warns=False,
        )


def _metrics(settings: Settings) -> Iterator[Advice]:
    if settings.metrics != "cloudwatch" and settings.node_image != "build":
        yield Advice(
            id="exporter-at-start",
            text=f"metrics={settings.metrics} with image={settings.node_image}: a node whose image lacks "
            "node_exporter installs it over the internet at its start, and has no metrics if it cannot. To "
            "have it in the image: -c image=build",
            warns=False,
        )


def _head_node(_: Settings, config: Rendered) -> Iterator[Advice]:
    type_, nodes = config["HeadNode"]["InstanceType"], sum(each.most for each in compute_nodes(config))
    base, known = load_base().head_node, head_node_size(type_)
    if known is None:
        yield Advice(
            id="head-node-unknown",
            text=f"head_node_type={type_} is not in the catalog: whether it is large enough for {nodes} "
            "nodes was not checked",
        )
    elif nodes > known.vcpus * base.nodes_per_vcpu:
        fits = (name for name, size in base.types.items() if nodes <= size.vcpus * base.nodes_per_vcpu)
        fit = next(fits, None)
        mend = (
            f"Type: -c head_node_type={fit}" if fit else "No type of the catalog suffices: several clusters"
        )
        yield Advice(
            id="head-node-small",
            text=f"The head node {type_} ({known.vcpus} vCPUs) is small for {nodes} nodes, and cannot be "
            f"changed later. {mend}",
        )


def _placement_group(settings: Settings) -> Iterator[Advice]:
    if settings.placement_group == "off" and settings.size.efa and ":" not in settings.capacity:
        yield Advice(
            id="placement-group-off",
            text=f"placement_group=off: {settings.compute_type} nodes may be far apart, and all-reduce "
            "runs slower over EFA. Type: -c placement_group=auto",
        )


def _system(settings: Settings) -> Iterator[Advice]:
    family = settings.family_facts
    families = [each.family for queue in settings.all_queues for each in queue.types]
    for each in {each.name: each for each in families}.values():
        if each.notice:
            yield Advice(id="family-notice", text=f"{each.name}: {each.notice}")
    if (
        family.image_recipe == "neuron"
        and settings.os_name != family.os
        and not settings.node_image.startswith("ami-")
    ):
        yield Advice(
            id="neuron-system",
            text=f"os={settings.os_name}: Neuron's driver and PyTorch are both made for {family.os} alone, "
            f"so nodes of {family.name} may fail to install them. Leave os out, or: -c os={family.os}",
        )


def _zone(settings: Settings) -> Iterator[Advice]:
    queues = [queue for queue in settings.all_queues if not queue.subnet_ids]
    if settings.vpc_id or (settings.zone == "auto" and any(queue.reservations for queue in queues)):
        return  # the zone is given: by your subnets, or by the reservations
    families = [each.family for queue in queues for each in queue.types]
    for family in {each.name: each for each in families}.values():
        yield from _zone_of(settings, family)


def _zone_of(settings: Settings, family: Family) -> Iterator[Advice]:
    zone, known = settings.zone, [each for zones in family.zones.values() for each in zones]
    if not known:
        return
    if zone == "auto":
        yield Advice(
            id="zone-auto",
            text="zone=auto takes the region's first zone that offers every instance type, and NetworkStack "
            "keeps it: a family that it lacks is refused later. To choose one that has "
            f"{family.name}: -c zone={_example(known)} (docs/families.md#{family.name})",
            warns=False,
        )
        return
    by_id = re.fullmatch(r"([a-z]+\d)-az\d", zone)
    region = None if by_id else zone[:-1]
    here = [each for each in known if by_id and each.startswith(f"{by_id[1]}-")]
    if (by_id and zone not in known) or (region and region not in family.zones):
        others = ", ".join(here or family.zones)
        yield Advice(
            id="zone-unknown",
            text=f"zone={zone}: {family.name} is not known to be offered there, only in {others}. The "
            "catalog may be out of date; ask `aws ec2 describe-instance-type-offerings --location-type "
            "availability-zone-id`",
        )


def _example(zones: list[str]) -> str:
    """Return a zone of us-east-1 if there is one, since most readers know it."""
    return min(zones, key=lambda zone: (not zone.startswith("use1-"), not zone.startswith("us"), zone))


def _scratch(settings: Settings) -> Iterator[Advice]:
    if settings.fsx_type == "scratch2" and not settings.fsx_id:
        yield Advice(
            id="lustre-scratch",
            text="fsx_type=scratch2 is not durable: when one of its servers fails, the files on it are gone, "
            "checkpoints that were not yet exported to the bucket too",
        )


def _lustre_efa(settings: Settings, config: Rendered) -> Iterator[Advice]:
    if settings.fsx_efa == "off":
        return
    usual, limits = usual_interfaces(config, settings), load_base().lustre_efa
    for queue, count in lustre_interfaces(config, settings).items():
        if not usual[queue]:
            why = (
                "over TCP only: EFA to Lustre requires an instance type with EFA of Nitro v4 or later, no "
                "trn2, in the zone of the file system"
            )
        elif not count:
            why = (
                f"over TCP only: FSx accepts {limits.most_connections} interfaces, fewer than nodes have "
                "EFA. Leave fsx_efa out"
            )
        else:
            of = f" of {usual[queue]}" if count < usual[queue] else ""
            why = (
                f"with {count}{of} EFA interfaces a node, if the image has Lustre's module for EFA (Ubuntu: "
                f"with Linux 6.8 or later), else over TCP. FSx accepts {limits.most_connections} interfaces "
                "of all nodes. It has not run on AWS: trainctl verify --nodes 1 shows what a node uses"
            )
        yield Advice(
            id=f"lustre-efa-{queue}",
            text=f"fsx_efa=on: queue {queue} reaches Lustre {why}",
            # A queue without EFA, such as that for data, in addition to one with it.
            warns=bool(usual[queue]) or not any(usual.values()),
        )


def _sizes(settings: Settings, config: Rendered) -> Iterator[Advice]:
    if nfs := about_head_node(settings, config):
        yield Advice(id="head-node-nfs", text=nfs)
    storage, saves = lustre_of(settings), expected_saves(settings)
    if storage and saves and not storage.suffices(saves):
        mend = sufficient_flags(saves, settings)
        said = (about_expected(settings, saves), *about_saves(saves, storage, mend))
        yield Advice(
            id="lustre-small",
            text=f"{'; '.join(said)}. For your own model: trainctl price titan --set SIZE=...",
            warns=not storage.suffices(saves, share=1),  # the next save comes before this one ends
        )
    if storage and storage.image_s(readers_of(settings)) > LONG_START_S:
        yield Advice(id="lustre-starts", text=about_image(readers_of(settings), storage))


def _spot(settings: Settings, config: Rendered) -> Iterator[Advice]:
    if any(each.kind == "spot" for each in compute_nodes(config)):
        yield Advice(
            id="spot-role",
            text=f"capacity=spot: without the role {SPOT_ROLE} in the account no node starts. trainctl "
            f"preflight says whether it exists; if not, type once: {CREATE_SPOT_ROLE}",
            warns=False,
        )
    if settings.capacity == "spot" and settings.min_nodes:
        yield Advice(
            id="spot-static",
            text=f"capacity=spot with min_nodes={settings.min_nodes}: the cluster's creation fails when EC2 "
            "has no spot capacity at that moment. Type: -c min_nodes=0",
        )


def _login(settings: Settings) -> Iterator[Advice]:
    if settings.login_nodes and not settings.ssh_from and not settings.security_group_id:
        yield Advice(
            id="login-nodes-closed",
            text=f"login_nodes={settings.login_nodes}: port 22 of their load balancer is closed. Type: "
            "-c ssh_from=YOUR.ADDRESS/32",
        )


def _static_fleet(_: Settings, config: Rendered) -> Iterator[Advice]:
    minutes = load_base().head_node.bootstrap_timeout_s // 60
    first = {
        "capacity-block": "Deploy it with a few nodes of the block; more are a live update. A block that has "
        "not started is not waited for",
        "ondemand": "Deploy it with min_nodes=0 first",
    }
    static = {each.queue: each.kind for each in compute_nodes(config) if each.least and each.kind != "spot"}
    for queue, kind in static.items():
        count = sum(each.least for each in compute_nodes(config) if each.queue == queue)
        # aws-parallelcluster-cookbook: wait_static_fleet_running in finalize_head_node.
        yield Advice(
            id=f"static-fleet-{queue}",
            text=f"queue {queue}: the deploy of a new cluster waits for all {count} static nodes, and fails "
            f"if one has not joined {minutes} minutes after the head node's start. "
            f"{first.get(kind, first['ondemand'])}",
        )


def _own_roles(settings: Settings, config: Rendered) -> Iterator[Advice]:
    for arn in own_roles(config) if settings.own_policies else ():
        name = arn.rpartition("/")[2]
        commands = "".join(
            f"\n  aws iam attach-role-policy --role-name {name} --policy-arn {policy}"
            for policy in settings.own_policies
        )
        yield Advice(
            id=f"own-role-{name}",
            text=f"node_policies: nodes with your own role {arn} do not get them: CloudFormation cannot "
            f"attach them. Type:{commands}",
        )


def _closed_ports(settings: Settings, config: Rendered) -> Iterator[Advice]:
    """Yield what ParallelCluster's rules would open: they belong to its own group, which no node has."""
    for node in (config["HeadNode"], *login_pools(config)):
        where, dcv = node.get("Name", "HeadNode"), node.get("Dcv") or {}
        for key, given in (("Ssh", node.get("Ssh") or {}), ("Dcv", dcv)):
            if "AllowedIps" in given:
                yield Advice(
                    id=f"no-effect-{where}-{key}",
                    text=f"overrides: {where}: {key}.AllowedIps has no effect: nodes have our security "
                    "group. For SSH type -c ssh_from=CIDR; for DCV add a group of your own to "
                    "Networking.AdditionalSecurityGroups",
                )
        has_our_group_alone = len(node["Networking"]["SecurityGroups"]) == 1
        if dcv.get("Enabled") and has_our_group_alone and not settings.security_group_id:
            yield Advice(
                id=f"dcv-closed-{where}",
                text=f"overrides: {where}: Dcv: port {dcv.get('Port', 8443)} is closed. Forward it through "
                "Session Manager, or add a security group that opens it to "
                "Networking.AdditionalSecurityGroups",
            )


def _idle_cost(settings: Settings, config: Rendered) -> Iterator[Advice]:
    yield Advice(id="idle-cost", text=render_idle_cost(idle_cost(settings, config)), warns=False)


_Finder = Callable[[Settings], Iterator[Advice]]
_FINDERS: tuple[_Finder, ...] = (
    *(_flags_file, _image, _metrics, _placement_group, _system, _zone),
    *(_scratch, _login),
)
_OF_CONFIG = (_lustre_efa, _sizes, _head_node, _spot, _static_fleet, _own_roles, _closed_ports, _idle_cost)
