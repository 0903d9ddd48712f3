"""Reads the stacks of Training Cluster from CloudFormation."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ops.account.image_stacks import is_image_stack
from ops.account.session import ClientOf, every, if_there
from ops.asset_code import asset_code
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import CLUSTER_STACK, STACK_IDS, cluster_of_stack

FOUNDATIONS = tuple(STACK_IDS)
"""Names of the stacks that all clusters share."""
DESCRIPTION = "Training Cluster:"
"""Prefix of the description of each of our templates."""
LIFT_PROTECTION = (
    "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name"
)
_GONE = "DELETE_COMPLETE"
_SKIPPED = "DELETE_SKIPPED"


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a stack, or one that a deleted stack retained."""

    type: str
    physical_id: str
    logical_id: str = ""
    kept: bool = True
    """True if the resource outlives the stack."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack of Training Cluster."""

    name: str
    status: str
    is_protected: bool
    outputs: Mapping[str, str]
    resources: tuple[Resource, ...]

    def of_type(self, type_: str) -> Iterator[Resource]:
        """Return the resources of a CloudFormation type."""
        return (each for each in self.resources if each.type == type_)


def cluster_stack_name(cluster_name: str) -> str:
    """Return the name of a cluster's TrainingClusterStack. Raises ConfigurationError for a wrong name."""
    return read_settings({"cluster_name": cluster_name}).stack_name


def stack_statuses(cloudformation: Any) -> dict[str, str]:
    """Return the status of every stack in the region, by name. Raises botocore's errors."""
    stacks = every(cloudformation, "describe_stacks", "Stacks")
    return {each["StackName"]: each["StackStatus"] for each in stacks}


def describe_stack(name: str, cloudformation: Any) -> dict[str, Any] | None:
    """Return a stack as CloudFormation describes it, None without one. Raises botocore's errors."""
    answer = if_there(lambda: cloudformation.describe_stacks(StackName=name))
    return dict(answer["Stacks"][0]) if answer else None


def stack_status(name: str, cloudformation: Any) -> str | None:
    """Return the status of a stack, None without one. Raises botocore's errors."""
    stack = describe_stack(name, cloudformation)
    return str(stack["StackStatus"]) if stack else None


def cluster_of(stack: Mapping[str, Any]) -> str | None:
    """Return the cluster that a stack, as CloudFormation describes it, belongs to; None for another stack."""
    name = cluster_of_stack(stack["StackName"])
    return name and (asset_code("guard", "names").names.cluster_in(stack) or name)


def deployed_name(cluster_name: str, client: ClientOf, *, or_failed: bool = True) -> str:
    """Return the name of a cluster: of the default and the former one, that which is deployed.

    Args:
        or_failed: or whose first deploy failed; the next deploy may give its stack the other name.

    Raises ConfigurationError for a wrong name, and botocore's errors.
    """
    own = cluster_stack_name(cluster_name)
    stack = describe_stack(own, client("cloudformation")) if own == CLUSTER_STACK else None
    named = cluster_of if or_failed else asset_code("guard", "names").names.name_kept_by
    return (stack and named(stack)) or cluster_name


def outputs_of(stack: Mapping[str, Any]) -> dict[str, str]:
    """Return the outputs of a stack, as CloudFormation describes it, by key."""
    return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}


def find_stacks(cloudformation: Any) -> tuple[dict[str, Stack], list[str]]:
    """Return our stacks in the region, by name, and the names of other stacks that are named like ours.

    The description of the template identifies ours; outputs would not, as a failed deploy has none. Raises
    botocore's errors.
    """
    ours: dict[str, Stack] = {}
    others = []
    for described in every(cloudformation, "describe_stacks", "Stacks"):
        name = described["StackName"]
        # A stack with nothing but a change set has neither template nor resources.
        if described["StackStatus"] == "REVIEW_IN_PROGRESS" or not _is_called_like_ours(name):
            continue
        template = parse_template(cloudformation.get_template(StackName=name)["TemplateBody"])
        if str(template.get("Description", "")).startswith(DESCRIPTION):
            ours[name] = Stack(
                name=name,
                status=described["StackStatus"],
                is_protected=bool(described.get("EnableTerminationProtection")),
                outputs=outputs_of(described),
                resources=read_resources(name, template, cloudformation),
            )
        else:
            others.append(name)
    return ours, others


def _is_called_like_ours(name: str) -> bool:
    return name in FOUNDATIONS or is_image_stack(name) or cluster_of_stack(name) is not None


def read_resources(stack: str, template: Mapping[str, Any], cloudformation: Any) -> tuple[Resource, ...]:
    """Read the existing resources of a stack. Raises botocore's errors."""
    kept = _kept(template)
    return tuple(
        Resource(
            type=each["ResourceType"],
            physical_id=each["PhysicalResourceId"],
            logical_id=each["LogicalResourceId"],
            kept=each["LogicalResourceId"] in kept or each["ResourceStatus"] == _SKIPPED,
        )
        for each in every(cloudformation, "list_stack_resources", "StackResourceSummaries", StackName=stack)
        if each["ResourceStatus"] != _GONE and each.get("PhysicalResourceId")
    )


def parse_template(template: Any) -> Mapping[str, Any]:
    """Return the template; an empty one for YAML, as all CDK templates are JSON."""
    try:
        body = json.loads(template) if isinstance(template, str) else template
    except json.JSONDecodeError:
        return {}
    return body if isinstance(body, Mapping) else {}


def _kept(template: Mapping[str, Any]) -> set[str]:
    """Return the logical ids of the resources that the template retains."""
    resources = template.get("Resources", {})
    return {id_ for id_, each in resources.items() if each.get("DeletionPolicy", "").startswith("Retain")}
