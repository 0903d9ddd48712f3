"""Base of the custom resources that one function answers in a single call."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from training_cluster.functions.layer import ARCHITECTURE, RUNTIME

SERVICE_TIMEOUT = Duration.minutes(10)
"""Limit for a function that never answers; CloudFormation's own is an hour."""


class FunctionResource(Construct):
    """A custom resource, its function, CDK's framework that calls the function, and one log of both.

    The function may always read the status of its own stack: a rollback is an Update, too.

    Args:
        name: child id of the custom resource.
        resource_type: type of the custom resource, Custom::...
        code: folder with handler.py and its on_event.
        timeout: limit of the function; shorter than the 10 minutes after which CloudFormation gives up.
        properties: input of the function.
        actions: calls that the function may make, such as ec2:DescribeImages, which only read and have no
            resource (Service Authorization Reference), or any.
        purpose: description of the function's role.
        read_stacks: names of stacks, with a wildcard, whose templates the function may read; it may then
            describe any stack.

    Attributes:
        resource: the custom resource, for its attributes and for dependencies on it.
        service_token: address of the function, for a custom resource of another stack.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        resource_type: str,
        code: Path,
        timeout: Duration,
        properties: Mapping[str, Any],
        actions: Sequence[str] = (),
        purpose: str = "Asks for the status of its own stack",
        read_stacks: str | None = None,
    ) -> None:
        super().__init__(scope, id_)
        # One group for both functions, created before either: a function without one creates its own.
        self._log = logs.LogGroup(self, "Log", retention=logs.RetentionDays.THREE_MONTHS)
        function = self._function(code, timeout, self._role(name, actions, purpose, read_stacks))
        provider = cr.Provider(self, "Provider", on_event_handler=function, log_group=self._log)
        acknowledge_provider(provider)
        self.service_token = provider.service_token
        self.resource = CustomResource(
            self,
            name,
            service_token=self.service_token,
            resource_type=resource_type,
            service_timeout=SERVICE_TIMEOUT,
            properties=properties,
        )

    def _function(self, code: Path, timeout: Duration, role: iam.Role) -> lambda_.Function:
        function = lambda_.Function(
            self,
            "OnEvent",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler="handler.on_event",
            code=lambda_.Code.from_asset(str(code), exclude=["**/__pycache__", "**/.*"]),
            role=role,
            timeout=timeout,
            memory_size=256,
            log_group=self._log,
        )
        acknowledge_runtime(function)
        return function

    def _role(self, policy: str, actions: Sequence[str], purpose: str, read_stacks: str | None) -> iam.Role:
        stack = Stack.of(self)
        stacks, read = (
            stack.format_arn(service="cloudformation", resource="stack", resource_name=name)
            for name in ("*", f"{read_stacks}/*")
        )
        described = stacks if read_stacks else stack.stack_id
        statements = [
            iam.PolicyStatement(
                actions=["cloudformation:DescribeStacks"],
                resources=[described],
            ),
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[self._log.log_group_arn]
            ),
        ]
        if read_stacks:
            statements.append(iam.PolicyStatement(actions=["cloudformation:GetTemplate"], resources=[read]))
        if actions:
            statements.append(iam.PolicyStatement(actions=list(actions), resources=["*"]))
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=purpose,
            # Inline: the rights exist from the first call to the last, without another resource to wait for.
            inline_policies={policy: iam.PolicyDocument(statements=statements)},
        )
        if read_stacks:
            reason = "asks who has a cluster's name, whatever that is, and for the flags of the last deploy"
            acknowledge_wildcards(role, [described, read], reason)
        if actions:
            acknowledge_wildcards(role, ["*"], "they only read, most without resource-level permissions")
        return role
