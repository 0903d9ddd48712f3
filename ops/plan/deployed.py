"""Reads the deployed state: templates and outputs of our stacks, and ParallelCluster's stored config."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from ops.account.session import ClientOf
from ops.account.stacks import Resource, describe_stack, outputs_of, parse_template, read_resources
from ops.asset_code import asset_code
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import STACK_IDS

OWNER_TAG = "training-cluster:stack-id"
"""Provider's tag with the id of the stack that created a cluster (assets/cluster_provider/request.py)."""
_VERSION_TAG = "parallelcluster:version"
_CREATION_FAILED = ("CREATE_FAILED", "ROLLBACK_")


@dataclass(frozen=True, kw_only=True)
class DeployedStack:
    """A deployed stack of Training Cluster."""

    id: str
    outputs: Mapping[str, str]
    template: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """Deployed state of one cluster and of the shared stacks."""

    region: str
    stacks: Mapping[str, DeployedStack] = field(default_factory=dict)
    """Existing stacks by name in CloudFormation: the shared ones and the cluster's own."""
    cluster_stack: DeployedStack | None = None
    pcluster_status: str | None = None
    """Status of ParallelCluster's own stack; None without one."""
    owner: str | None = None
    """Id of the stack that created the cluster."""
    version: str | None = None
    """Version of ParallelCluster."""
    config: Mapping[str, Any] | None = None
    """Config of the last successful deploy; None if the creation failed."""
    resources: tuple[Resource, ...] = ()
    """Resources of the cluster's own stack."""

    @property
    def creation_failed(self) -> bool:
        """True if the creation of the cluster failed; the next deploy then replaces it."""
        return (self.pcluster_status or "").startswith(_CREATION_FAILED)

    @property
    def is_foreign(self) -> bool:
        """True if a cluster of this name exists that our stack did not create."""
        if self.pcluster_status is None:
            return False
        return self.cluster_stack is None or self.owner != self.cluster_stack.id

    @property
    def templates(self) -> dict[str, Mapping[str, Any]]:
        """Templates of the existing stacks, by name."""
        return {name: stack.template for name, stack in self.stacks.items()}

    def output(self, stack: str, name: str) -> str | None:
        """Return an output of a stack, None without it."""
        return self.stacks[stack].outputs.get(name) if stack in self.stacks else None


def read_deployed(settings: Settings, client: ClientOf) -> Deployed:
    """Read the state from CloudFormation and S3. Raises botocore's errors."""
    cloudformation = client("cloudformation")
    found = {name: _read(name, cloudformation) for name in (*STACK_IDS, settings.stack_name)}
    stacks = {name: stack for name, stack in found.items() if stack}
    own, described = stacks.get(settings.stack_name), describe_stack(settings.cluster_name, cloudformation)
    tags = {each["Key"]: each["Value"] for each in (described or {}).get("Tags", [])}
    deployed = Deployed(
        region=cloudformation.meta.region_name,
        stacks=stacks,
        cluster_stack=own,
        pcluster_status=described["StackStatus"] if described else None,
        owner=tags.get(OWNER_TAG),
        version=tags.get(_VERSION_TAG),
        resources=read_resources(settings.stack_name, own.template, cloudformation) if own else (),
    )
    if described is None or deployed.creation_failed or deployed.is_foreign:
        return deployed
    return replace(deployed, config=_stored_config(described, client("s3")))


def read_cluster_config(name: str, client: ClientOf) -> Mapping[str, Any] | None:
    """Return the config of any ParallelCluster cluster; None without one. Raises botocore's errors."""
    described = describe_stack(name, client("cloudformation"))
    if described is None or "ResourcesS3Bucket" not in {
        each["ParameterKey"] for each in described.get("Parameters", [])
    }:
        return None
    return _stored_config(described, client("s3"))


def _read(name: str, cloudformation: Any) -> DeployedStack | None:
    names = asset_code("guard", "names").names
    described = describe_stack(name, cloudformation)
    if described is None or described["StackStatus"] in names.NOTHING_THERE:
        return None
    template = cloudformation.get_template(StackName=name)["TemplateBody"]
    return DeployedStack(
        id=described["StackId"],
        outputs=outputs_of(described),
        template=parse_template(template),
    )


def _stored_config(described: Mapping[str, Any], s3: Any) -> Mapping[str, Any]:
    """Read the config from the library's bucket, which the stack's parameters name."""
    parameters = {each["ParameterKey"]: each["ParameterValue"] for each in described["Parameters"]}
    version = parameters.get("ConfigVersion")
    answer = s3.get_object(
        Bucket=parameters["ResourcesS3Bucket"],
        Key=f"{parameters['ArtifactS3RootDirectory']}/configs/cluster-config.yaml",
        # After an update that was rolled back, the newest version is not the deployed one.
        **({"VersionId": version} if version and version != "NONE" else {}),
    )
    config: Mapping[str, Any] = yaml.safe_load(answer["Body"].read())
    return config
