"""Custom resource of the cluster; its provider runs the real ParallelCluster library."""

from typing import Any, Literal

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import custom_resources as cr
from constructs import Construct

from training_cluster.acknowledgements import (
    acknowledge_provider,
    acknowledge_runtime,
    acknowledge_wildcards,
)
from training_cluster.functions.layer import ARCHITECTURE, RUNTIME, library_layer
from training_cluster.paths import ASSETS
from training_cluster.permissions.scopes import Target
from training_cluster.permissions.statements import provider_statements
from training_cluster.stack_names import progress_parameter

PROVIDER_CODE = ASSETS / "cluster_provider"

RESOURCE_TYPE = "Custom::TrainingCluster"

# CloudFormation gives a custom resource 60 minutes, of which the head node may take 45. The framework counts
# attempts (total / interval) and no time, so the provider ends by its own clock (record.py).
TOTAL_TIMEOUT = Duration.minutes(58)
# A deploy waits half of it after the cluster is ready, on average; its polls cost less than a cent in all.
QUERY_INTERVAL = Duration.seconds(10)


class Cluster(Construct):
    """Creates, updates and deletes one ParallelCluster cluster.

    Args:
        config: the cluster config; passed as one JSON string, since CloudFormation would turn its
            numbers and booleans into strings.
        scripts_bucket: bucket of the nodes' scripts; the library checks that they exist. The logs of a
            failed cluster are saved under its `logs/`.
        on_busy: action of an update that needs a stopped compute fleet while nodes run: fail, drain, stop.
        layer: source of the library's Lambda layer: hosted (by AWS), or build (make layer).
        permissions_boundary: ARN of the policy that bounds every role of the cluster.
        secret_arn: ARN of the secret with the accounting database's password.
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
        layer: Literal["hosted", "build"],
        permissions_boundary: str | None = None,
        secret_arn: str | None = None,
    ) -> None:
        super().__init__(scope, id_)
        # The provider creates and deletes the parameter: CloudFormation would overwrite it at updates.
        self._progress = progress_parameter(Stack.of(self).stack_name)
        parameter_arn = Stack.of(self).format_arn(
            service="ssm", resource="parameter", resource_name=self._progress.removeprefix("/")
        )
        self._progress_log = logs.LogGroup(self, "ProgressLog", retention=logs.RetentionDays.THREE_MONTHS)
        self._bucket = scripts_bucket
        self._role = self._provider_role(
            provider_statements(
                Target(
                    scripts_bucket_arn=scripts_bucket.bucket_arn,
                    cluster_name=cluster_name,
                    permissions_boundary=permissions_boundary,
                    secret_arn=secret_arn,
                    progress_parameter_arn=parameter_arn,
                    progress_log_group_arn=self._progress_log.log_group_arn,
                ),
                config,
            )
        )
        self._layer = library_layer(self, source=layer)
        provider = cr.Provider(
            self,
            "Provider",
            on_event_handler=self._function("OnEvent"),
            is_complete_handler=self._function("IsComplete"),
            query_interval=QUERY_INTERVAL,
            total_timeout=TOTAL_TIMEOUT,
            log_group=logs.LogGroup(self, "FrameworkLog", retention=logs.RetentionDays.THREE_MONTHS),
        )
        acknowledge_provider(provider)
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

    def _provider_role(self, statements: list[iam.PolicyStatement]) -> iam.Role:
        role = iam.Role(
            self,
            "ProviderRole",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Drives ParallelCluster, which creates the cluster's stack with these rights",
        )
        for statement in statements:
            role.add_to_policy(statement)
        wide = [resource for statement in statements for resource in statement.resources]
        reason = "docs/permissions.md: each by its prefix, under a condition, or with the reason why neither"
        acknowledge_wildcards(role, wide, reason)
        return role

    def _function(self, name: str) -> lambda_.Function:
        handler = {"OnEvent": "handler.on_event", "IsComplete": "handler.is_complete"}[name]
        log_group = logs.LogGroup(self, f"{name}Log", retention=logs.RetentionDays.THREE_MONTHS)
        log_group.grant_write(self._role)
        function = lambda_.Function(
            self,
            name,
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler=handler,
            code=lambda_.Code.from_asset(str(PROVIDER_CODE), exclude=["**/__pycache__", "**/.*"]),
            layers=[self._layer],
            role=self._role,
            # The library synthesises the cluster's template with Node: 10 to 60 s, 1.2 GB.
            timeout=Duration.minutes(15),
            memory_size=2048,
            environment={
                "PROGRESS_PARAMETER": self._progress,
                "PROGRESS_LOG_GROUP": self._progress_log.log_group_name,
                "LOGS_BUCKET": self._bucket.bucket_name,
            },
            log_group=log_group,
        )
        acknowledge_runtime(function)
        return function
