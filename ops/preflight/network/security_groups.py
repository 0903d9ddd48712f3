"""Checks the traffic that security groups allow."""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ops.preflight.finding import Finding, finding
from training_cluster.flags.settings import Settings

_ALL = "-1"
_TCP = (_ALL, "tcp", "6")
_WORLD = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Other side of the traffic: the nodes, by their group or their addresses."""

    group_id: str | None
    cidr: str | None

    def passes(self, rule: Mapping[str, Any]) -> bool:
        """Return True if a rule covers the peer; a prefix list is assumed to, as in ParallelCluster."""
        groups = {pair.get("GroupId") for pair in rule.get("UserIdGroupPairs", [])}
        ranges = [each["CidrIp"] for each in rule.get("IpRanges", [])]
        covered = self.cidr is not None and any(_covers(each, self.cidr) for each in ranges)
        return (
            (self.group_id is not None and self.group_id in groups)
            or covered
            or bool(rule.get("PrefixListIds"))
        )


def _covers(wide: str, narrow: str) -> bool:
    return ipaddress.IPv4Network(wide, strict=False).supernet_of(ipaddress.IPv4Network(narrow, strict=False))


def describe_groups(group_ids: Iterable[str], ec2: Any) -> list[Mapping[str, Any]]:
    """Return the groups that exist. Raises botocore's errors."""
    filters = [{"Name": "group-id", "Values": sorted(set(group_ids))}]
    found: list[Mapping[str, Any]] = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    return found


def ports_open(groups: Iterable[Mapping[str, Any]], ports: tuple[int, int], peer: Peer) -> bool:
    """Return True if the groups together allow a peer in and out on a range of TCP ports."""
    return all(
        any(_is_open(rule, ports, peer) for group in groups for rule in group.get(direction, []))
        for direction in ("IpPermissions", "IpPermissionsEgress")
    )


def _is_open(rule: Mapping[str, Any], ports: tuple[int, int], peer: Peer) -> bool:
    first, last = ports
    every = rule["IpProtocol"] == _ALL
    return (
        rule["IpProtocol"] in _TCP
        and (every or (rule["FromPort"] <= first and last <= rule["ToPort"]))
        and peer.passes(rule)
    )


def authorize_commands(group_id: str, ports: Iterable[tuple[int, int]], node_group_id: str) -> str:
    """Return the commands that allow the nodes in and out, quoted because zsh expands brackets."""
    rules = " ".join(
        f"'IpProtocol=tcp,FromPort={first},ToPort={last},UserIdGroupPairs=[{{GroupId={node_group_id}}}]'"
        for first, last in ports
    )
    return "\n".join(
        f"aws ec2 authorize-security-group-{direction} --group-id {group_id} --ip-permissions {rules}"
        for direction in ("ingress", "egress")
    )


def check_node_group(settings: Settings, ec2: Any) -> Iterator[Finding]:
    """Check an existing security group of the nodes; the app's own group needs no check."""
    if not (id_ := settings.security_group_id):
        return
    found = describe_groups([id_], ec2)
    group = found[0] if found else None
    yield finding(
        f"security_group_id {id_}",
        f"in {group['VpcId']}" if group else "missing",
        good=group is not None and group["VpcId"] == settings.vpc_id,
        mend=f"aws ec2 describe-security-groups --filters Name=vpc-id,Values={settings.vpc_id}, then "
        "-c security_group_id=...",
    )
    if group is None:
        return
    for direction, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
        # ParallelCluster refuses EFA without a rule for the group itself; 0.0.0.0/0 is not enough.
        itself = any(
            rule["IpProtocol"] == _ALL and pair.get("GroupId") == id_
            for rule in group[key]
            for pair in rule.get("UserIdGroupPairs", [])
        )
        yield finding(
            f"security group: all {direction} to itself",
            "yes" if itself else "no",
            good=itself,
            mend=f"aws ec2 authorize-security-group-{direction} --group-id {id_} --ip-permissions "
            f"'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={id_}}}]'",
        )
    out = any(
        _is_open(rule, (443, 443), Peer(group_id=None, cidr=_WORLD)) for rule in group["IpPermissionsEgress"]
    )
    yield finding(
        "security group: HTTPS to the internet",
        "yes" if out else "no: packages and AWS APIs need it",
        good=out,
        otherwise="warning",
        mend=f"aws ec2 authorize-security-group-egress --group-id {id_} --ip-permissions "
        f"'IpProtocol=tcp,FromPort=443,ToPort=443,IpRanges=[{{CidrIp={_WORLD}}}]'",
    )
