"""The deployed cluster, read from its stack's parameters and bucket, as its own head node reads it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import yaml

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_slurm.partitions import NodeShape, Partition, parse_partitions
from training_cluster.cluster.nodes import BUNDLE_ARGUMENT
from training_cluster.overrides.merge import scripts_of

_MIB_KEY = "SizeInMiB"


@dataclass(frozen=True, kw_only=True)
class BootstrapAction:
    """A custom action of the cluster config, which a node runs after it has booted."""

    script: str
    """URL of the script (s3://)."""
    args: tuple[str, ...]
    left_out: int = 0
    """Number of the user's own scripts after it, which change a machine and are not run here."""


@dataclass(frozen=True, kw_only=True)
class DeployedCluster:
    """One deployed cluster, from its stack and its config."""

    name: str
    stack_status: str
    config: dict[str, Any]
    """Cluster config as ParallelCluster stores it."""
    config_text: str
    partitions: tuple[Partition, ...]
    slurm_settings: tuple[Mapping[str, object], ...]
    """Lines for slurm.conf of its config."""
    head_node_action: BootstrapAction
    head_node_update_action: BootstrapAction
    compute_node_action: BootstrapAction

    @property
    def bundle_sha256(self) -> str:
        """Checksum of its nodes' scripts."""
        update = self.config["HeadNode"]["CustomActions"]["OnNodeUpdated"]
        return str(scripts_of(update)[0]["Args"][-1]).removeprefix(BUNDLE_ARGUMENT)


def read_deployed_cluster(address: LocalAwsAddress, cluster_name: str) -> DeployedCluster:
    """Read the cluster's stack and the config that the library stored for its nodes."""
    cloudformation = client(address, "cloudformation")
    stack = cloudformation.describe_stacks(StackName=cluster_name)["Stacks"][0]
    parameters = {p["ParameterKey"]: p["ParameterValue"] for p in stack["Parameters"]}
    folder = f"{parameters['ArtifactS3RootDirectory']}/configs"
    s3 = client(address, "s3")

    def read(name: str) -> str:
        answer = s3.get_object(Bucket=parameters["ResourcesS3Bucket"], Key=f"{folder}/{name}")
        return str(answer["Body"].read().decode())

    config_text = read("cluster-config.yaml")
    config: dict[str, Any] = yaml.safe_load(config_text)
    types: dict[str, Any] = json.loads(read("instance-types-data.json"))
    return DeployedCluster(
        name=cluster_name,
        stack_status=str(stack["StackStatus"]),
        config=config,
        config_text=config_text,
        partitions=parse_partitions(
            cluster_config=config, shapes={name: _shape(data) for name, data in types.items()}
        ),
        slurm_settings=tuple(config["Scheduling"]["SlurmSettings"].get("CustomSlurmSettings", ())),
        head_node_action=_action(config["HeadNode"], "OnNodeConfigured"),
        head_node_update_action=_action(config["HeadNode"], "OnNodeUpdated"),
        compute_node_action=_action(config["Scheduling"]["SlurmQueues"][0], "OnNodeConfigured"),
    )


def client(address: LocalAwsAddress, service: str) -> Any:
    """Return a client of one service of the local AWS."""
    url = address.s3_url if service == "s3" else address.url
    return boto3.client(service, endpoint_url=url, **client_options(address))  # type: ignore[call-overload]


def client_options(address: LocalAwsAddress) -> dict[str, Any]:
    """Return the arguments with which boto3 calls the local AWS, whatever the environment contains."""
    variables = address.client_variables()
    return {
        "region_name": variables["AWS_REGION"],
        "aws_access_key_id": variables["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": variables["AWS_SECRET_ACCESS_KEY"],
        "verify": str(address.certificate),
    }


def _shape(instance_type: dict[str, Any]) -> NodeShape:
    return NodeShape(
        vcpus=int(instance_type["VCpuInfo"]["DefaultVCpus"]),
        memory_mib=int(instance_type["MemoryInfo"][_MIB_KEY]),
    )


def _action(node: dict[str, Any], moment: str) -> BootstrapAction:
    """Return the setup action of this app; the user's own scripts after it are made for real nodes."""
    first, *others = scripts_of(node["CustomActions"][moment])
    return BootstrapAction(script=first["Script"], args=tuple(first["Args"]), left_out=len(others))
