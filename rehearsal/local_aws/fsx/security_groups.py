"""FSx's check of the security groups of a new Lustre file system: they have to permit Lustre's traffic."""

from collections.abc import Collection
from typing import Any

from rehearsal.local_aws.emulators import moto_actions
from rehearsal.local_aws.emulators.moto_types import ec2

_PORT = 988
_REFUSED = (
    "The file system cannot be created because the default security group in the subnet provided or the "
    f"provided security groups do not permit Lustre LNET network traffic on port {_PORT}"
)

# FSx for Lustre guide, troubleshooting: "Cannot create an EFA-enabled file system".
_REFUSED_EFA = (
    "Insufficient security group permissions to create an EFA-enabled file system. Update security group to "
    "allow all internal inbound and outbound traffic."
)


def check(group_ids: Collection[str], *, efa: bool) -> None:
    """Check the groups' rules, as CreateFileSystem does at once, without waiting for them.

    Args:
        group_ids: security groups of the new file system.
        efa: True for a file system with EFA, whose traffic no rule about addresses permits.

    Raises:
        FSx's InvalidNetworkSettings: the groups have no inbound or no outbound rule for Lustre's port; with
            efa, for all traffic among the groups.
    """
    groups = [ec2().get_security_group_from_id(each) for each in group_ids]
    permits, words = (_permits_all, _REFUSED_EFA) if efa else (_permits, _REFUSED)
    for direction in ("ingress_rules", "egress_rules"):
        rules = [rule for group in groups for rule in getattr(group, direction)]
        if groups and not any(permits(rule, group_ids) for rule in rules):
            raise moto_actions.json_error("InvalidNetworkSettings", words)


def _permits(rule: Any, group_ids: Collection[str]) -> bool:
    """Return True for a rule about Lustre's port, between these groups or with addresses."""
    about_port = rule.ip_protocol == "-1" or (
        rule.ip_protocol == "tcp" and rule.from_port <= _PORT <= rule.to_port
    )
    return about_port and bool(rule.ip_range or rule.source_group.get("GroupId") in group_ids)


def _permits_all(rule: Any, group_ids: Collection[str]) -> bool:
    """Return True for a rule about all traffic between these groups."""
    return rule.ip_protocol == "-1" and rule.source_group.get("GroupId") in group_ids
