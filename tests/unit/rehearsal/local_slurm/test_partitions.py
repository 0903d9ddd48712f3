"""Partitions of the local Slurm from a cluster's configuration."""

from typing import Any

from rehearsal.local_slurm import NodeShape, parse_partitions

SHAPES = {
    "p4d.24xlarge": NodeShape(vcpus=96, memory_mib=1_179_648),
    "m6i.4xlarge": NodeShape(vcpus=16, memory_mib=65_536),
    "m6i.8xlarge": NodeShape(vcpus=32, memory_mib=131_072),
}


def cluster_config(**p4d: Any) -> dict[str, Any]:
    gpu = {"Name": "p4d", "InstanceType": "p4d.24xlarge", "MinCount": 0, "MaxCount": 4} | p4d
    instances = [{"InstanceType": "m6i.8xlarge"}, {"InstanceType": "m6i.4xlarge"}]
    cpu = {"Name": "m6i", "Instances": instances, "MinCount": 2, "MaxCount": 3}
    queues = [{"Name": "train", "ComputeResources": [gpu]}, {"Name": "cpu", "ComputeResources": [cpu]}]
    return {"Region": "us-east-1", "Scheduling": {"Scheduler": "slurm", "SlurmQueues": queues}}


def test_shapes_and_counts_are_those_of_parallelcluster() -> None:
    _, cpu = parse_partitions(cluster_config=cluster_config(), shapes=SHAPES)
    assert cpu.node_sets[0].shape == SHAPES["m6i.4xlarge"]
    config = cluster_config()
    resource = config["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]
    del resource["MinCount"], resource["MaxCount"]
    train, _ = parse_partitions(cluster_config=config, shapes=SHAPES)
    assert (train.node_sets[0].static, train.node_sets[0].dynamic) == (0, 10)
