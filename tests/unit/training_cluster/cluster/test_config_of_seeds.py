"""The clusters of the five walk-throughs, each with what its seed asked for by name."""

from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from tests.unit.training_cluster.cluster.test_config import IMAGE, SEEDS, render
from training_cluster.advice.advice import advice
from training_cluster.cluster.job_environment import render_job_environments, render_links
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.rules.context import read_settings

P3DN, MEGATRON, XEON, TRAINIUM = SEEDS.values()


def _resource(config: dict[str, Any], queue: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = config["Scheduling"]["SlurmQueues"][queue]["ComputeResources"][0]
    return found


def _mounts(config: dict[str, Any]) -> dict[str, str]:
    return {each["MountDir"]: each["StorageType"] for each in config["SharedStorage"]}


def test_p3dn_has_what_seeds_000_and_004_asked_for(synthesise: Any) -> None:
    config = render(**P3DN)
    # A c5n.2xlarge head node, two nodes that start only when a job wants them.
    assert config["HeadNode"]["InstanceType"] == "c5n.2xlarge"
    resource = _resource(config)
    assert resource["InstanceType"] == "p3dn.24xlarge"
    assert (resource["MinCount"], resource["MaxCount"]) == (0, 2)
    assert resource["Efa"] == {"Enabled": True}
    # Lustre at /lustre, linked to the bucket.
    assert _mounts(config)["/fsx"] == "FsxLustre"
    assert "/lustre /fsx" in render_links(read_settings(P3DN))
    storage: Template = synthesise(**P3DN)["StorageStack"]
    storage.has_resource_properties(
        "AWS::FSx::DataRepositoryAssociation",
        {"FileSystemPath": "/datasets", "FileSystemId": Match.any_value()},
    )
    # A script of the bucket prepares each node.
    assert _script(config["Scheduling"]["SlurmQueues"][0]) == "s3://bucket/bootstrap/training/bootstrap.sh"
    # The official image runs no more on Volta, so the family takes its own recipe, and says so.
    assert config["Scheduling"]["SlurmQueues"][0]["Image"] == {"CustomAmi": IMAGE}
    (said,) = [each.text for each in advice(read_settings(P3DN)) if each.id == "image-build"]
    assert "recipe volta" in said


def _script(node: dict[str, Any]) -> str:
    return str(node["CustomActions"]["OnNodeConfigured"]["Script"])


def test_p3dn_reads_its_image_from_ssm_at_deploy(synthesise: Any) -> None:
    parameters = synthesise(**P3DN)["TrainingClusterStack"].find_parameters(
        "*",
        {
            "Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>",
            "Default": f"/imagebuilder/training-cluster/{PCLUSTER_VERSION}/ubuntu2404/volta",
        },
    )
    assert len(parameters) == 1
    others = synthesise(family="p4d")["TrainingClusterStack"].find_parameters(
        "*", {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"}
    )
    assert others == {}


@pytest.mark.slow
def test_megatron_has_what_seed_001_asked_for(synthesise: Any) -> None:
    config = render(**MEGATRON)
    head, queues = config["HeadNode"], config["Scheduling"]["SlurmQueues"]
    assert head["InstanceType"] == "c5.4xlarge"
    assert [queue["Name"] for queue in queues] == ["gpu", "cpu"]
    # Four EFA cards in a private subnet: ParallelCluster makes an interface a card.
    gpu = _resource(config)
    assert (gpu["InstanceType"], gpu["Efa"]) == ("p4d.24xlarge", {"Enabled": True})
    assert queues[0]["Networking"]["SubnetIds"] == ["subnet-0bbbbbbbbbbbbbbbb"]
    assert head["Networking"]["SubnetId"] == "subnet-0aaaaaaaaaaaaaaaa"
    # A custom AMI; 128 GiB for the head node, 256 for compute nodes.
    assert queues[0]["Image"] == {"CustomAmi": IMAGE}
    assert head["LocalStorage"]["RootVolume"]["Size"] == 128
    assert {q["ComputeSettings"]["LocalStorage"]["RootVolume"]["Size"] for q in queues} == {256}
    # Lustre that imports from the bucket and exports to it.
    storage: Template = synthesise(**MEGATRON)["StorageStack"]
    for path, direction in (("/datasets", "AutoImportPolicy"), ("/checkpoints", "AutoExportPolicy")):
        storage.has_resource_properties(
            "AWS::FSx::DataRepositoryAssociation",
            {"FileSystemPath": path, "S3": {direction: {"Events": ["NEW", "CHANGED"]}}},
        )
    # Data preparation has its own nodes, which run no GPU settings.
    assert "ACCELERATOR_KIND='none'" in render_job_environments(read_settings(MEGATRON))["cpu"]


def test_xeon_has_what_seed_002_asked_for(synthesise: Any) -> None:
    config = render(**XEON)
    resource = _resource(config)
    assert (resource["InstanceType"], resource["MaxCount"]) == ("m6i.4xlarge", 3)
    assert config["HeadNode"]["LocalStorage"]["RootVolume"]["Size"] == 250
    queue = config["Scheduling"]["SlurmQueues"][0]
    assert queue["ComputeSettings"]["LocalStorage"]["RootVolume"]["Size"] == 250
    # All traffic among the nodes, for MPI over ssh or Slurm.
    network: Template = synthesise(**XEON)["NetworkStack"]
    for kind, other in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        network.has_resource_properties(
            f"AWS::EC2::SecurityGroup{kind}", {"IpProtocol": "-1", other: Match.any_value()}
        )


def test_xeon_with_amx_is_another_family_with_bf16() -> None:
    flags = XEON | {"family": "r7iz"}
    assert _resource(render(**flags))["InstanceType"] == "r7iz.4xlarge"
    environment = render_job_environments(read_settings(flags))["cpu"]
    assert "MIXED_PRECISION='bf16'" in environment
    assert "MIXED_PRECISION='no'" in render_job_environments(read_settings(XEON))["cpu"]


def test_trainium_has_what_seed_003_asked_for(synthesise: Any) -> None:
    config = render(**TRAINIUM)
    resource, queue = _resource(config), config["Scheduling"]["SlurmQueues"][0]
    assert config["HeadNode"]["InstanceType"] == "c5.4xlarge"
    assert (resource["InstanceType"], resource["MinCount"], resource["MaxCount"]) == ("trn1.32xlarge", 0, 2)
    assert resource["Efa"] == {"Enabled": True}
    assert read_settings(TRAINIUM).size.network_cards == 8
    # One EFS at /efs; /neuron_shared is another path of it, since it may stand only once.
    assert _mounts(config) == {"/fsx": "FsxLustre", "/efs": "Efs"}
    assert "/neuron_shared /efs" in render_links(read_settings(TRAINIUM))
    # Local NVMe at /scratch, 800 GB roots.
    assert queue["ComputeSettings"]["LocalStorage"]["EphemeralVolume"] == {"MountDir": "/scratch"}
    assert queue["ComputeSettings"]["LocalStorage"]["RootVolume"]["Size"] == 800
    assert config["HeadNode"]["LocalStorage"]["RootVolume"]["Size"] == 800
    # By zone id; the throughput of the seed, whose cost is said; elastic otherwise.
    templates = synthesise(**TRAINIUM)
    templates["NetworkStack"].has_resource_properties("Custom::ComputeZone", {"Zone": "use1-az4"})
    templates["StorageStack"].has_resource_properties(
        "AWS::EFS::FileSystem", {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 1024}
    )
    assert [each for each in advice(read_settings(TRAINIUM)) if "6,144 USD a month" in each.text]
    synthesise(family="trn1")["StorageStack"].has_resource_properties(
        "AWS::EFS::FileSystem", {"ThroughputMode": "elastic"}
    )


@pytest.mark.parametrize("flags", [P3DN, MEGATRON, XEON, TRAINIUM])
def test_what_is_dead_in_the_seeds_does_not_come_back(flags: dict[str, str]) -> None:
    config = str(render(**flags))
    for dead in ("GdrSupport", "InstanceTypesData", "alinux2'", "ubuntu2004"):
        assert dead not in config
