"""Our stacks, as CloudFormation has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from training_cluster.settings import Settings

FOUNDATIONS = ("NetworkStack", "StorageStack", "AccountingStack")
LIFT_PROTECTION = (
    "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name"
)
_CLUSTER = "TrainingClusterStack"
_GONE = "DELETE_COMPLETE"
_SKIPPED = "DELETE_SKIPPED"


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource that a stack has, or had and left."""

    type: str
    physical_id: str
    logical_id: str = ""
    kept: bool = True
    """Whether it outlives the stack."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One of our stacks."""

    name: str
    status: str
    is_protected: bool
    outputs: Mapping[str, str]
    resources: tuple[Resource, ...]

    def of_type(self, type_: str) -> Iterator[Resource]:
        """Its resources of a CloudFormation type."""
        return (each for each in self.resources if each.type == type_)


def cluster_stack_name(cluster_name: str) -> str:
    """CloudFormation name of a cluster's TrainingClusterStack. Raises ConfigurationError for a wrong name."""
    return Settings.from_context({"cluster_name": cluster_name}).stack_name


def cluster_of(stack_name: str) -> str | None:
    """The cluster whose TrainingClusterStack has this name; None for another stack."""
    if stack_name == _CLUSTER:
        return "training"
    prefix = f"{_CLUSTER}-"
    return stack_name.removeprefix(prefix) if stack_name.startswith(prefix) else None


def stack_status(name: str, cloudformation: Any) -> str | None:
    """Status of a stack, None when there is none. Raises botocore's errors."""
    try:
        answer = cloudformation.describe_stacks(StackName=name)
    except cloudformation.exceptions.ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return str(answer["Stacks"][0]["StackStatus"])


def find_stacks(cloudformation: Any) -> dict[str, Stack]:
    """All of our stacks in the region, by name. Raises botocore's errors."""
    return {
        described["StackName"]: _read(described, cloudformation)
        for page in cloudformation.get_paginator("describe_stacks").paginate()
        for described in page["Stacks"]
        if described["StackName"] in FOUNDATIONS or cluster_of(described["StackName"])
    }


def _read(described: Mapping[str, Any], cloudformation: Any) -> Stack:
    name = described["StackName"]
    kept = _kept(cloudformation.get_template(StackName=name)["TemplateBody"])
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    return Stack(
        name=name,
        status=described["StackStatus"],
        is_protected=bool(described.get("EnableTerminationProtection")),
        outputs={each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", [])},
        resources=tuple(
            Resource(
                type=each["ResourceType"],
                physical_id=each["PhysicalResourceId"],
                logical_id=each["LogicalResourceId"],
                kept=each["LogicalResourceId"] in kept or each["ResourceStatus"] == _SKIPPED,
            )
            for page in pages
            for each in page["StackResourceSummaries"]
            if each["ResourceStatus"] != _GONE and each.get("PhysicalResourceId")
        ),
    )


def _kept(template: Any) -> set[str]:
    """Logical ids of what the template retains; boto3 reads templates that are JSON, as CDK's are."""
    body = json.loads(template) if isinstance(template, str) else template
    resources = body.get("Resources", {})
    return {id_ for id_, each in resources.items() if each.get("DeletionPolicy", "").startswith("Retain")}
