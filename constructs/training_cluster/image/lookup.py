"""Custom resource that finds the official image, or checks a custom one."""

from aws_cdk import Duration
from constructs import Construct

from training_cluster.catalog.family import Architecture
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.functions.custom_resource import FunctionResource
from training_cluster.paths import ASSETS

CLUSTER_IMAGE_CODE = ASSETS / "cluster_image"

OFFICIAL = "official"


class ClusterImage(FunctionResource):
    """AMI of exactly this ParallelCluster version, operating system and architecture; else the deploy fails.

    Args:
        wanted: official, for ParallelCluster's own, or ami-..., which is checked.
        os: operating system of the cluster.
        architecture: processor architecture of the cluster's nodes.
        root_gib: root volume of the image's instances; the image's own may not be larger.

    Attributes:
        id: id of the AMI (a token).
        name: name of the AMI (a token).
        note: text on facts of the image that could not be checked, or empty (a token).
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        wanted: str,
        os: str,
        architecture: Architecture = "x86_64",
        root_gib: int,
    ) -> None:
        super().__init__(
            scope,
            id_,
            name="Image",
            resource_type="Custom::ClusterImage",
            code=CLUSTER_IMAGE_CODE,
            # The function repeats a throttled call for up to two minutes.
            timeout=Duration.minutes(8),
            properties={
                "Wanted": wanted,
                "PclusterVersion": PCLUSTER_VERSION,
                "Os": os,
                "Architecture": architecture,
                "RootGib": root_gib,
            },
            actions=["ec2:DescribeImages"],
            purpose="Asks EC2 about images",
        )
        self.id = self.resource.get_att_string("ImageId")
        self.name = self.resource.get_att_string("Name")
        self.note = self.resource.get_att_string("Note")
