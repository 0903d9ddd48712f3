"""An account in which a cluster was deployed with some flags, for `trainctl plan`."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from ops.plan.deployed import OWNER_TAG
from tests.unit.ops.fake_account import REGION, Account, Refused
from tests.unit.ops.jobs_head_node import slurm_answer
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import ResourceIds, existing_database, placeholders
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.given import GIVEN_FLAGS, given_flags
from training_cluster.flags.settings import Settings
from training_cluster.network.guarded import guarded_network
from training_cluster.rules.context import read_settings
from training_cluster.storage.guarded import guarded_storage

GROUP, HEAD_NODE = "TrainingClusterStack-PlacementGroup-x", "i-0123456789abcdef0"
_IDS = placeholders(image_id=None, bootstrap_budget_s=0)
POLICIES = {
    construct: f"arn:aws:iam::123456789012:policy/parallelcluster-training-{construct}-us-east-1"
    for construct in ResourceIds.own_policies().values()
}
BUNDLE_SHA256 = _IDS.bundle_sha256
OUTPUTS: dict[str, dict[str, str]] = {
    "TrainingCluster-Network": {
        "VpcId": "vpc-0123456789abcdef0",
        "PublicSubnetId": _IDS.public_subnet_id,
        "PrivateSubnetId": _IDS.private_subnet_id,
        "NodeSecurityGroupId": _IDS.node_security_group_id,
        "ZoneId": "use1-az4",
        "ZoneName": "us-east-1a",
    },
    "TrainingCluster-Storage": {"BucketName": "bucket", "FileSystemId": _IDS.lustre_id, "EfsId": _IDS.efs_id},
    "TrainingClusterStack": {"HeadNodeInstanceId": HEAD_NODE},
}


def stored_config(**flags: str) -> dict[str, Any]:
    """Return the stored config of a cluster that was deployed with these flags, by another bundle."""
    settings = read_settings(flags)
    name = settings.cluster_name
    ids = replace(
        _IDS,
        region=REGION,
        key_name=settings.key_name or f"{name}-key",
        placement_group_name=GROUP,
        bootstrap_budget_s=bootstrap_budget_s(settings),
        image_id=settings.node_image if settings.node_image.startswith("ami-") else None,
        database=existing_database(settings),
        **{field: POLICIES[construct] for field, construct in ResourceIds.own_policies().items()},  # type: ignore[arg-type]
    )
    config = render_cluster_config(settings=settings, ids=ids)
    config["Tags"].append({"Key": OWNER_TAG, "Value": _arn("TrainingClusterStack")})
    return config


def _arn(name: str) -> str:
    return f"arn:aws:cloudformation:{REGION}:123456789012:stack/{name}/1"


def templates_of(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the parts of our templates that the plan reads; test_flags.py compares with the real ones."""
    network = {"vpc_id": {"Fn::ImportValue": "VpcId"}}
    kept = {
        "TrainingCluster-Network": guarded_network(settings),
        "TrainingCluster-Storage": guarded_storage(
            settings, vpc_id="", subnet_id="", node_security_group_id=""
        ),
    }
    found: dict[str, dict[str, Any]] = {}
    for name, values in kept.items():
        told = {flag: dict[str, Any](value.as_property()) for flag, value in values.items()}
        if name == "TrainingCluster-Storage" and "vpc_id" in told:
            told["vpc_id"]["value"] = network["vpc_id"]
        found[name] = {"Resources": {"Guard": {"Type": "Custom::Guard", "Properties": {"Values": told}}}}
    if settings.endpoints == "private":
        endpoint = {"Type": "AWS::EC2::VPCEndpoint", "Properties": {"VpcEndpointType": "Interface"}}
        found["TrainingCluster-Network"]["Resources"]["Endpoint"] = endpoint
    found[settings.stack_name] = {"Metadata": {GIVEN_FLAGS: given_flags(settings)}, "Resources": {}}
    return found


def deployed(
    *,
    running: int = 0,
    jobs: str = "",
    status: str = "UPDATE_COMPLETE",
    owner: str | None = None,
    version: str = PCLUSTER_VERSION,
    metadata: bool = True,
    without: tuple[str, ...] = (),
    **flags: str,
) -> Account:
    """An account with our stacks as these flags make them, and a cluster.

    Args:
        running: compute nodes that run now.
        jobs: lines of squeue.
        status: of ParallelCluster's stack.
        without: names of stacks that are not there.
    """
    templates = templates_of(read_settings(flags))
    if not metadata:
        del templates["TrainingClusterStack"]["Metadata"]
    tags = {OWNER_TAG: owner or _arn("TrainingClusterStack"), "parallelcluster:version": version}
    stacks = {name: _described(name, "CREATE_COMPLETE", OUTPUTS.get(name, {}), {}) for name in templates}
    stacks["training"] = _described("training", status, {}, tags)
    stacks = {name: each for name, each in stacks.items() if name not in without}

    def describe(asked: dict[str, Any]) -> Any:
        name = asked.get("StackName")
        if name and name not in stacks:
            return Refused("ValidationError", f"Stack with id {name} does not exist")
        return {"Stacks": [stacks[name]] if name else list(stacks.values())}

    def read(asked: dict[str, Any]) -> Any:
        assert asked["Key"] == "parallelcluster/x/configs/cluster-config.yaml"
        assert asked["VersionId"] == "v2"
        return {"Body": io.BytesIO(yaml.safe_dump(stored_config(**flags)).encode())}

    return Account(
        {
            "DescribeStacks": describe,
            "GetTemplate": lambda asked: {"TemplateBody": json.dumps(templates[asked["StackName"]])},
            "ListStackResources": {
                "StackResourceSummaries": list(_resources(json.dumps(stored_config(**flags))))
            },
            "GetObject": read,
            "DescribeInstances": {"Reservations": [{"Instances": [{"InstanceId": HEAD_NODE}] * running}]},
            "SendCommand": {"Command": {"CommandId": "0" * 36}},
            "GetCommandInvocation": {
                "Status": "Success",
                "StandardOutputContent": slurm_answer("squeue", jobs),
            },
            "GetParameter": Refused("ParameterNotFound"),
        }
    )


def _resources(config: str) -> Iterator[dict[str, str]]:
    """Yield the resources of the cluster's own stack that its config names."""
    for construct, physical in {**POLICIES, "PlacementGroup": GROUP}.items():
        if f'"{physical}"' in config:
            yield {
                "LogicalResourceId": f"{construct}7EE66815",
                "PhysicalResourceId": physical,
                "ResourceType": "AWS::EC2::PlacementGroup"
                if physical == GROUP
                else "AWS::IAM::ManagedPolicy",
                "ResourceStatus": "CREATE_COMPLETE",
                "LastUpdatedTimestamp": "2026-01-01",
            }


def _described(name: str, status: str, outputs: Mapping[str, str], tags: Mapping[str, str]) -> dict[str, Any]:
    parameters = {
        "ResourcesS3Bucket": "parallelcluster-x",
        "ArtifactS3RootDirectory": "parallelcluster/x",
        "ConfigVersion": "v2",
    }
    return {
        "StackId": _arn(name),
        "StackName": name,
        "StackStatus": status,
        "CreationTime": "2026-01-01",
        "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
    }
