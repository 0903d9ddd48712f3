"""An image that AWS knows: a custom resource finds the official one, or checks one of your own."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct

from training_cluster.acknowledgements import (
    acknowledge_provider,
    acknowledge_runtime,
    acknowledge_wildcards,
)
from training_cluster.cluster_flags import PCLUSTER_VERSION
from training_cluster.layer import ARCHITECTURE, RUNTIME

CLUSTER_IMAGE_CODE = Path(__file__).resolve().parents[2] / "assets" / "cluster_image"

RESOURCE_TYPE = "Custom::ClusterImage"
OFFICIAL = "official"
NODE_ARCHITECTURE = "x86_64"
"""Of every family."""


class ClusterImage(Construct):
    """An AMI of exactly this ParallelCluster version, system and architecture; else the deploy fails.

    Args:
        wanted: official, for ParallelCluster's own, or ami-..., which is checked.
        os: of the cluster.
        root_gib: root volume that instances of the image get; the image's may not be larger.

    Attributes:
        id: ami-... (a token).
        name: of the AMI (a token).
        note: what was not known of the image, or empty (a token).
        resource: for those who have to wait.
    """

    def __init__(self, scope: Construct, id_: str, *, wanted: str, os: str, root_gib: int) -> None:
        super().__init__(scope, id_)
        self._log = logs.LogGroup(self, "Log", retention=logs.RetentionDays.THREE_MONTHS)
        provider = cr.Provider(self, "Provider", on_event_handler=self._function(), log_group=self._log)
        acknowledge_provider(provider)
        self.resource = CustomResource(
            self,
            "Image",
            service_token=provider.service_token,
            resource_type=RESOURCE_TYPE,
            # Of a function that never answers; an hour without it.
            service_timeout=Duration.minutes(10),
            properties={
                "Wanted": wanted,
                "PclusterVersion": PCLUSTER_VERSION,
                "Os": os,
                "Architecture": NODE_ARCHITECTURE,
                "RootGib": root_gib,
            },
        )
        self.id = self.resource.get_att_string("ImageId")
        self.name = self.resource.get_att_string("Name")
        self.note = self.resource.get_att_string("Note")

    def _function(self) -> lambda_.Function:
        function = lambda_.Function(
            self,
            "OnEvent",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler="handler.on_event",
            code=lambda_.Code.from_asset(str(CLUSTER_IMAGE_CODE), exclude=["**/__pycache__", "**/.*"]),
            role=self._role(),
            # A throttled call is repeated for up to two minutes.
            timeout=Duration.minutes(8),
            memory_size=256,
            log_group=self._log,
        )
        acknowledge_runtime(function)
        return function

    def _role(self) -> iam.Role:
        statements = [
            # EC2 knows no resource of this action (Service Authorization Reference).
            iam.PolicyStatement(actions=["ec2:DescribeImages"], resources=["*"]),
            iam.PolicyStatement(
                actions=["cloudformation:DescribeStacks"], resources=[Stack.of(self).stack_id]
            ),
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[self._log.log_group_arn]
            ),
        ]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Asks EC2 about images",
            # Inline, so that the rights are there before the first call and after the last.
            inline_policies={"Image": iam.PolicyDocument(statements=statements)},
        )
        acknowledge_wildcards(role, ["*"], "EC2 knows no resource of this action")
        return role
