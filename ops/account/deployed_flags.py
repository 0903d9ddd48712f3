"""Reads the flags of a cluster's last deploy from the deployed templates."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.session import ClientOf, if_there
from ops.account.stacks import parse_template
from training_cluster.flags.flag import facts_of
from training_cluster.flags.given import read_given_flags
from training_cluster.flags.network import is_wide
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import GUARD_TYPE, NETWORK_STACK, STORAGE_STACK, cluster_stack

Templates = Mapping[str, Mapping[str, Any]]
"""Deployed templates by the name of their stack."""
_NOBODY = "127.0.0.1/32"


def flags_or_none(cluster_name: str, client: ClientOf | None) -> dict[str, Any] | None:
    """Read the flags like `read_flags`; None also if there is no account to ask, or AWS does not answer."""
    try:
        return read_flags(cluster_name, client) if client else None
    except (BotoCoreError, ClientError):
        return None


def read_flags(cluster_name: str, client: ClientOf) -> dict[str, Any] | None:
    """Read the flags of the last deploy; None if an older release of this app made it.

    Without a cluster of this name: the flags of the shared stacks, which another deploy would change.

    Raises:
        botocore's errors.
    """
    cloudformation = client("cloudformation")
    names = (cluster_stack(cluster_name), NETWORK_STACK, STORAGE_STACK)
    found = {name: _template(name, cloudformation) for name in names}
    return flags_of({name: each for name, each in found.items() if each is not None}, names[0])


def flags_of(templates: Templates, cluster: str) -> dict[str, Any] | None:
    """Return the flags of the last deploy; None if an older release of this app made it.

    The flags of network and storage are read from their own stacks, because the deploy of another cluster may
    have changed them since, and CloudFormation takes new metadata only along with another change.

    Args:
        cluster: name of the cluster's own stack.
    """
    given = read_given_flags(templates[cluster]) if cluster in templates else {}
    if given is None:
        return None
    shared = guarded_values(templates)
    flags = {flag: value for flag, value in given.items() if flag not in shared}
    flags |= {flag: value for flag, value in shared.items() if value}
    flags = {flag: value for flag, value in flags.items() if not _is_replaced(flag, flags)}
    flags.pop("ssh_from_anywhere", None)
    return flags | ({"ssh_from_anywhere": "yes"} if is_wide(str(flags.get("ssh_from", _NOBODY))) else {})


def _is_replaced(flag: str, flags: Mapping[str, Any]) -> bool:
    """Return True for a flag of a new resource in whose place the deploy of another cluster gave an id."""
    info = Settings.model_fields.get(flag)
    return info is not None and facts_of(info).refused_with in flags


def guarded(template: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return what the guard of a stack protects, by flag; empty without a stack or guard."""
    resources = (template or {}).get("Resources", {}).values()
    return next((each["Properties"]["Values"] for each in resources if each["Type"] == GUARD_TYPE), {})


def guarded_values(templates: Templates) -> dict[str, str]:
    """Return the guarded values by flag, without those that are known only at deploy."""
    return {
        flag: kept["value"]
        # For a flag of both stacks, the network's value is the one that the user gave.
        for stack in (STORAGE_STACK, NETWORK_STACK)
        for flag, kept in guarded(templates.get(stack)).items()
        if isinstance(kept["value"], str)
    }


def _template(name: str, cloudformation: Any) -> Mapping[str, Any] | None:
    answer = if_there(lambda: cloudformation.get_template(StackName=name))
    return parse_template(answer["TemplateBody"]) if answer else None
