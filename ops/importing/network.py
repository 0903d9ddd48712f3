"""Network of a cluster config: subnets, groups, SSH and login nodes."""

import ipaddress
from typing import Any

from ops.importing.translation import Config, Kind, Translation
from training_cluster.flags.network import is_wide
from training_cluster.overrides.nodes import placed_nodes
from training_cluster.overrides.reserved import flag_for, reserved_reason

_UNSET_VPC = "vpc-00000000"
_WORLD = "0.0.0.0/0"
"""AllowedIps of ParallelCluster without the key."""


def take_network(config: Config, to: Translation) -> None:
    """Take subnets, the network that reaches port 22, and security groups."""
    _subnets(config, to)
    _ports(config, to)
    _groups(config, to)


def _subnets(config: Config, to: Translation) -> None:
    head = config["HeadNode"].get("Networking", {}).get("SubnetId")
    queues = config["Scheduling"].get("SlurmQueues", [])
    subnets = [each for queue in queues for each in queue.get("Networking", {}).get("SubnetIds", [])]
    if not head or not subnets:
        return
    is_private = head in subnets
    to.flags |= {"vpc_id": _UNSET_VPC, "private_subnet_id": head if is_private else subnets[0]}
    to.flags |= {"public_access": "off"} if is_private else {"public_subnet_id": head}
    ask = f"aws ec2 describe-subnets --subnet-ids {subnets[0]} --query Subnets[0].VpcId"
    to.fill.append(f"vpc_id: no cluster config has it: {ask}")


def _ports(config: Config, to: Translation) -> None:
    """Compare the networks that reach port 22 and DCV, which ParallelCluster's own groups open."""
    reached: dict[str, str] = {}
    given = _network(config["HeadNode"].get("Ssh", {}).get("AllowedIps"))
    for path, node in placed_nodes(config):
        own = _network(node.get("Ssh", {}).pop("AllowedIps", None))
        if "SecurityGroups" in node.get("Networking", {}):
            if own:
                to.note("moved", f"{path}.Ssh.AllowedIps", f"{own}: without effect with SecurityGroups")
            continue
        if not path.startswith("Scheduling"):
            reached[path] = str(own or given or _WORLD)
        if node.get("Dcv", {}).get("Enabled"):
            words = (
                "the app's security group does not open the port of DCV: forward it through Session Manager, "
                "or add a group of your own (AdditionalSecurityGroups)"
            )
            to.note("narrower", f"{path}.Dcv.AllowedIps", words)
    key = "HeadNode.Ssh.AllowedIps"
    if given and "HeadNode" in reached:
        if flag_for(key, given):
            to.flags["ssh_from"] = given
            to.note("wider", key, f"{given}: -c ssh_from opens port 22 of compute nodes, too")
            if is_wide(str(given)):
                to.flags["ssh_from_anywhere"] = "yes"
        else:
            to.lose(key, given, str(reserved_reason(given, key)))
    for path, network in reached.items():
        at = f"{path}.Ssh.AllowedIps"
        if "ssh_from" not in to.flags and not to.is_lost(at):
            words = (
                f"port 22 is closed here, where ParallelCluster opens it to {network}: connect with trainctl "
                "connect, or type -c ssh_from=YOUR.ADDRESS/32"
            )
            to.note("narrower", at, words)
        elif network != given:
            kind: Kind = "narrower" if _is_within(given, network) else "wider"
            to.note(kind, at, f"{network} -> {given}: -c ssh_from is one network for all nodes")


def _network(given: str | None) -> str | None:
    """Return a network without the bits of its hosts; a prefix list as it is."""
    try:
        return given and str(ipaddress.IPv4Network(given, strict=False))
    except ValueError:
        return given


def _is_within(inner: Any, outer: str) -> bool:
    try:
        return ipaddress.IPv4Network(inner).subnet_of(ipaddress.IPv4Network(outer))
    except ValueError:  # a prefix list has no addresses here
        return False


def _groups(config: Config, to: Translation) -> None:
    """Make groups additional ones, unless all nodes have the same one, which a flag takes."""
    groups = {tuple(node.get("Networking", {}).get("SecurityGroups", ())) for _, node in placed_nodes(config)}
    (named, *others) = groups
    if not others and len(named) == 1:
        return
    for path, node in placed_nodes(config):
        networking = node.get("Networking", {})
        if given := networking.pop("SecurityGroups", None):
            more = [*given, *networking.get("AdditionalSecurityGroups", [])]
            networking["AdditionalSecurityGroups"] = list(dict.fromkeys(more))
            words = f"{', '.join(given)} in addition to our group, in which the nodes reach each other"
            to.note("wider", f"{path}.Networking.SecurityGroups", words)
