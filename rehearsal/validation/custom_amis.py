"""Custom AMIs on the local AWS, such as a person has built elsewhere."""

from rehearsal.deployed import client
from rehearsal.local_aws.address import LocalAwsAddress
from training_cluster.flags.cluster import PCLUSTER_VERSION

_ROOT_GIB = 45


def register_image(address: LocalAwsAddress, os_name: str, *, version: str = PCLUSTER_VERSION) -> str:
    """Register an AMI that ParallelCluster accepts for an operating system; return its id."""
    ec2 = client(address, "ec2")
    image_id = ec2.register_image(
        Name=f"own-{os_name}-{version}",
        Architecture="x86_64",
        RootDeviceName="/dev/sda1",
        VirtualizationType="hvm",
        EnaSupport=True,
        BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": _ROOT_GIB}}],
    )["ImageId"]
    tags = {
        "parallelcluster:version": version,
        "parallelcluster:os": os_name,
        "parallelcluster:build_status": "available",
    }
    ec2.create_tags(Resources=[image_id], Tags=[{"Key": k, "Value": v} for k, v in tags.items()])
    return str(image_id)
