"""AWS's own publications in every region: ParallelCluster's official AMIs and its Lambda layer."""

import io
import json
import zipfile
from pathlib import Path

import boto3

from rehearsal.local_aws.address import REGION, LocalAwsAddress

# `pcluster.lib.list_official_images` searches for this owner and name. The library's validators recognize an
# official image by its description.
_AMAZON = "247102896272"
# Parts of the names, with the root device of each.
_OS_PARTS = {
    "ubuntu-2204-lts-hvm": "/dev/sda1",
    "ubuntu-2404-lts-hvm": "/dev/sda1",
    "amzn2023-hvm": "/dev/xvda",
}
_ARCHITECTURES = ("x86_64", "arm64")
_PUBLISHED = "202610010000"


def official_images(pcluster_version: str) -> list[dict[str, object]]:
    """Describe the official AMIs, in the form of moto's MOTO_AMIS_PATH file."""
    names = [
        (
            f"aws-parallelcluster-{pcluster_version}-{os_part}-{architecture}-{_PUBLISHED}",
            architecture,
            device,
        )
        for os_part, device in _OS_PARTS.items()
        for architecture in _ARCHITECTURES
    ]
    return [
        {
            "ami_id": f"ami-{number:017x}",
            "state": "available",
            "public": True,
            "owner_id": _AMAZON,
            "image_location": f"amazon/{name}",
            "sriov": "simple",
            "root_device_type": "ebs",
            "root_device_name": device,
            "description": "AWS ParallelCluster AMI",
            "image_type": "machine",
            "platform": None,
            "architecture": architecture,
            "name": name,
            "virtualization_type": "hvm",
            "hypervisor": "xen",
        }
        for number, (name, architecture, device) in enumerate(names, start=1)
    ]


def write_official_images(path: Path, pcluster_version: str) -> None:
    """Write the AMI file that moto reads when it is imported."""
    path.write_text(json.dumps(official_images(pcluster_version)))


def publish_layer(address: LocalAwsAddress, pcluster_version: str) -> None:
    """Upload the layer to its place on AWS. It is empty: functions run on .venv-pcluster (functions.py)."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as layer:
        layer.writestr("python/README", "The local AWS: the library is the one of .venv-pcluster.\n")
    bucket = f"{REGION}-aws-parallelcluster"
    client = boto3.client("s3", endpoint_url=address.s3_url, verify=str(address.certificate))
    if REGION == "us-east-1":  # which S3 does not accept as a constraint
        client.create_bucket(Bucket=bucket)
    else:
        client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    client.put_object(
        Bucket=bucket,
        Key=f"parallelcluster/{pcluster_version}/layers/aws-parallelcluster/lambda-layer.zip",
        Body=archive.getvalue(),
    )
