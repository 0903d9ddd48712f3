"""A custom resource of ours that one function answers in a single call: what all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

_SERVICE_TIMEOUT = Duration.minutes(10)
"""Of a function that never answers; an hour without it."""


@dataclass(frozen=True, kw_only=True)
class Ec2Questions:
    """What a function asks EC2."""

    actions: Sequence[str]
    """As DescribeImages: such as have no resource (Service Authorization Reference)."""
    purpose: str
    """The description of the function's role."""


class FunctionResource(Construct):
    """A function, CDK's framework that calls it, one log of both, and the custom resource that it answers.

    The function may always ask for the status of its own stack: a rollback is an Update, too.

    Args:
        name: child id of the custom resource.
        resource_type: Custom::...
        code: folder with handler.py and its on_event.
        timeout: of the function; shorter than the 10 minutes after which CloudFormation gives up.
        properties: what the function receives.
        questions: for a function that asks EC2; None: its stack is all that it asks about.

    Attributes:
        resource: for its attributes, and for those who have to wait.
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
        questions: Ec2Questions | None = None,
    ) -> None:
        super().__init__(scope, id_)
        # One group for both functions, made before either: one that is called first makes its own.
        self._log = logs.LogGroup(self, "Log", retention=logs.RetentionDays.THREE_MONTHS)
        function = self._function(code, timeout, self._role(name, questions))
        provider = cr.Provider(self, "Provider", on_event_handler=function, log_group=self._log)
        acknowledge_provider(provider)
        self.resource = CustomResource(
            self,
            name,
            service_token=provider.service_token,
            resource_type=resource_type,
            service_timeout=_SERVICE_TIMEOUT,
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

    def _role(self, policy: str, questions: Ec2Questions | None) -> iam.Role:
        statements = [
            iam.PolicyStatement(
                actions=["cloudformation:DescribeStacks"], resources=[Stack.of(self).stack_id]
            ),
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[self._log.log_group_arn]
            ),
        ]
        if questions:
            actions = [f"ec2:{each}" for each in questions.actions]
            statements.append(iam.PolicyStatement(actions=actions, resources=["*"]))
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=questions.purpose if questions else "Asks for the status of its own stack",
            # Inline: there before the first call and after the last, and no resource more to wait for.
            inline_policies={policy: iam.PolicyDocument(statements=statements)},
        )
        if questions:
            acknowledge_wildcards(role, ["*"], "EC2 knows no resource of these actions")
        return role
