"""The cluster: a custom resource whose provider drives the real ParallelCluster library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aws_cdk import Annotations, Aws, CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import custom_resources as cr
from constructs import Construct

from training_cluster.cluster_flags import PCLUSTER_VERSION
from training_cluster.permissions import provider_statements

PROVIDER_CODE = Path(__file__).resolve().parents[2] / "assets" / "cluster_provider"

# The layer's own template names this runtime (aws-parallelcluster: custom_resource/cluster.yaml).
RUNTIME = lambda_.Runtime.PYTHON_3_12
RESOURCE_TYPE = "Custom::TrainingCluster"

# CloudFormation gives a custom resource 3600 s. The framework counts attempts (total / interval), not
# time: 96 attempts, each 30 s apart and up to 5 s long, are 56 minutes, and on_event comes before.
TOTAL_TIMEOUT = Duration.minutes(48)
QUERY_INTERVAL = Duration.seconds(30)


class Cluster(Construct):
    """Creates, updates and deletes one ParallelCluster cluster.

    Args:
        config: the cluster config; travels as one JSON string, since CloudFormation would turn its
            numbers and booleans into strings.
        scripts_bucket: where the nodes' scripts lie; the library checks that they exist.
        on_busy: what an update does that wants the compute fleet stopped while nodes run: fail, drain, stop.
        permissions_boundary: ARN of the policy that bounds every role of the cluster.
        secret_arn: of the accounting database's password.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cluster_name: str,
        config: dict[str, Any],
        scripts_bucket: s3.IBucket,
        on_busy: str,
        permissions_boundary: str | None = None,
        secret_arn: str | None = None,
    ) -> None:
        super().__init__(scope, id_)
        self._role = self._provider_role(
            provider_statements(
                scripts_bucket_arn=scripts_bucket.bucket_arn,
                cluster_name=cluster_name,
                permissions_boundary=permissions_boundary,
                secret_arn=secret_arn,
            )
        )
        self._layer = self._published_layer()
        provider = cr.Provider(
            self,
            "Provider",
            on_event_handler=self._function("OnEvent"),
            is_complete_handler=self._function("IsComplete"),
            query_interval=QUERY_INTERVAL,
            total_timeout=TOTAL_TIMEOUT,
        )
        self.resource = CustomResource(
            self,
            "Cluster",
            service_token=provider.service_token,
            resource_type=RESOURCE_TYPE,
            properties={
                "ClusterName": cluster_name,
                "ClusterConfiguration": Stack.of(self).to_json_string(config),
                "OnBusy": on_busy,
            },
        )
        # The role's policy must exist before the first call and outlive the last one.
        self.resource.node.add_dependency(self._role)

    @property
    def head_node_instance_id(self) -> str:
        """EC2 id of the head node (a token)."""
        return self.resource.get_att_string("HeadNodeInstanceId")

    def _published_layer(self) -> lambda_.LayerVersion:
        bucket = s3.Bucket.from_bucket_name(self, "PublishedLayers", f"{Aws.REGION}-aws-parallelcluster")
        Annotations.of(bucket).acknowledge_warning(
            "@aws-cdk/aws-lambda:codeFromBucketObjectVersionNotSpecified",
            "AWS's own bucket; the key holds the version, and what lies there never changes",
        )
        return lambda_.LayerVersion(
            self,
            "ParallelClusterLayer",
            code=lambda_.Code.from_bucket(
                bucket, f"parallelcluster/{PCLUSTER_VERSION}/layers/aws-parallelcluster/lambda-layer.zip"
            ),
            compatible_runtimes=[RUNTIME],
            description=f"aws-parallelcluster {PCLUSTER_VERSION}, as AWS publishes it",
        )

    def _provider_role(self, statements: list[iam.PolicyStatement]) -> iam.Role:
        role = iam.Role(
            self,
            "ProviderRole",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Drives ParallelCluster, which creates the cluster's stack with these rights",
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name("service-role/AWSLambdaBasicExecutionRole")
            ],
        )
        for statement in statements:
            role.add_to_policy(statement)
        return role

    def _function(self, name: str) -> lambda_.Function:
        handler = {"OnEvent": "handler.on_event", "IsComplete": "handler.is_complete"}[name]
        return lambda_.Function(
            self,
            name,
            runtime=RUNTIME,
            handler=handler,
            code=lambda_.Code.from_asset(str(PROVIDER_CODE), exclude=["**/__pycache__", "**/.*"]),
            layers=[self._layer],
            role=self._role,
            # The library synthesises the cluster's template with Node: 10 to 60 s, 1.2 GB.
            timeout=Duration.minutes(15),
            memory_size=2048,
            log_group=logs.LogGroup(self, f"{name}Log", retention=logs.RetentionDays.THREE_MONTHS),
        )
