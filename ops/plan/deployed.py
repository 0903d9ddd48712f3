"""What stands: our stacks' templates and outputs, and the config that ParallelCluster keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from ops.account.session import ClientOf
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import STACK_IDS

OWNER_TAG = "training-cluster:stack-id"
"""The provider's (assets/cluster_provider/request.py): which stack made a cluster."""
_VERSION_TAG = "parallelcluster:version"
_NEVER_STOOD = ("CREATE_FAILED", "ROLLBACK_")
_NOTHING_THERE = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One of our stacks."""

    id: str
    status: str
    outputs: Mapping[str, str]
    template: Mapping[str, Any]

    def properties(self, resource_type: str) -> Mapping[str, Any] | None:
        """Of its first resource of a type; None without one."""
        resources = self.template.get("Resources", {}).values()
        return next((each.get("Properties", {}) for each in resources if each["Type"] == resource_type), None)


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """All of it, for one cluster."""

    region: str
    stacks: Mapping[str, Standing] = field(default_factory=dict)
    """The shared ones and the cluster's own, by their names in CloudFormation; those that exist."""
    cluster_stack: Standing | None = None
    pcluster_status: str | None = None
    """Of the stack that ParallelCluster made; None where there is none."""
    owner: str | None = None
    """Id of the stack that made that cluster."""
    version: str | None = None
    """Of ParallelCluster."""
    config: Mapping[str, Any] | None = None
    """As the cluster was last given it; None where it never stood."""
    placement_group: str | None = None

    @property
    def never_stood(self) -> bool:
        """Whether what is there failed while it was made: the next deploy replaces it."""
        return (self.pcluster_status or "").startswith(_NEVER_STOOD)

    @property
    def is_foreign(self) -> bool:
        """Whether a cluster of that name is there which our stack did not make."""
        if self.pcluster_status is None:
            return False
        return self.cluster_stack is None or self.owner != self.cluster_stack.id

    def output(self, stack: str, name: str) -> str | None:
        """An output of one of the stacks."""
        return self.stacks[stack].outputs.get(name) if stack in self.stacks else None


def read_deployed(settings: Settings, client: ClientOf) -> Deployed:
    """Ask CloudFormation and S3. Raises botocore's errors."""
    cloudformation = client("cloudformation")
    found = {name: _read(name, cloudformation) for name in (*STACK_IDS, settings.stack_name)}
    stacks = {name: stack for name, stack in found.items() if stack}
    own, described = stacks.get(settings.stack_name), _describe(settings.cluster_name, cloudformation)
    tags = {each["Key"]: each["Value"] for each in (described or {}).get("Tags", [])}
    deployed = Deployed(
        region=cloudformation.meta.region_name,
        stacks=stacks,
        cluster_stack=own,
        pcluster_status=described["StackStatus"] if described else None,
        owner=tags.get(OWNER_TAG),
        version=tags.get(_VERSION_TAG),
        placement_group=_placement_group(settings.stack_name, cloudformation) if own else None,
    )
    if described is None or deployed.never_stood or deployed.is_foreign:
        return deployed
    return _with_config(deployed, _stored_config(described, client("s3")))


def _with_config(deployed: Deployed, config: Mapping[str, Any]) -> Deployed:
    return Deployed(**{**deployed.__dict__, "config": config})


def _describe(name: str, cloudformation: Any) -> Mapping[str, Any] | None:
    try:
        described: Mapping[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except cloudformation.exceptions.ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return described


def _read(name: str, cloudformation: Any) -> Standing | None:
    described = _describe(name, cloudformation)
    if described is None or described["StackStatus"] in _NOTHING_THERE:
        return None
    template = cloudformation.get_template(StackName=name)["TemplateBody"]
    return Standing(
        id=described["StackId"],
        status=described["StackStatus"],
        outputs={each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", [])},
        template=json.loads(template) if isinstance(template, str) else template,
    )


def _placement_group(stack_name: str, cloudformation: Any) -> str | None:
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack_name):
        for each in page["StackResourceSummaries"]:
            if each["ResourceType"] == "AWS::EC2::PlacementGroup" and each.get("PhysicalResourceId"):
                return str(each["PhysicalResourceId"])
    return None


def _stored_config(described: Mapping[str, Any], s3: Any) -> Mapping[str, Any]:
    """Where the library itself reads it: its bucket, by the stack's parameters."""
    parameters = {each["ParameterKey"]: each["ParameterValue"] for each in described["Parameters"]}
    version = parameters.get("ConfigVersion")
    answer = s3.get_object(
        Bucket=parameters["ResourcesS3Bucket"],
        Key=f"{parameters['ArtifactS3RootDirectory']}/configs/cluster-config.yaml",
        # After an update that was rolled back the newest is not what stands.
        **({"VersionId": version} if version and version != "NONE" else {}),
    )
    config: Mapping[str, Any] = yaml.safe_load(answer["Body"].read())
    return config
