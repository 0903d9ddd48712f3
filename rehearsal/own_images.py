"""AMIs of one's own on the local AWS, as an image pipeline or a person would have them."""

from __future__ import annotations

import boto3

from rehearsal.deployed import client_options
from rehearsal.local_aws.address import LocalAwsAddress
from training_cluster.cluster_flags import PCLUSTER_VERSION

_ROOT_GIB = 45


def register_image(address: LocalAwsAddress, system: str) -> str:
    """Register an AMI that ParallelCluster takes for an operating system; its id."""
    ec2 = boto3.client("ec2", endpoint_url=address.url, **client_options(address))
    image_id = ec2.register_image(
        Name=f"training-{system}",
        Architecture="x86_64",
        RootDeviceName="/dev/sda1",
        VirtualizationType="hvm",
        BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": _ROOT_GIB}}],
    )["ImageId"]
    tags = {
        "parallelcluster:version": PCLUSTER_VERSION,
        "parallelcluster:os": system,
        "parallelcluster:build_status": "available",
    }
    ec2.create_tags(Resources=[image_id], Tags=[{"Key": k, "Value": v} for k, v in tags.items()])
    return str(image_id)


def publish_image(address: LocalAwsAddress, *, parameter: str, system: str) -> str:
    """Register an AMI, and put its id where the deploy looks for a built image; its id."""
    image_id = register_image(address, system)
    ssm = boto3.client("ssm", endpoint_url=address.url, **client_options(address))
    ssm.put_parameter(Name=parameter, Value=image_id, Type="String", DataType="aws:ec2:image", Overwrite=True)
    return image_id
