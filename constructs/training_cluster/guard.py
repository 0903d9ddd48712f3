"""The guard: a custom resource that fails an update before anything that holds data could be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct

from training_cluster.acknowledgements import acknowledge_function, acknowledge_provider
from training_cluster.layer import ARCHITECTURE, RUNTIME

GUARD_CODE = Path(__file__).resolve().parents[2] / "assets" / "guard"

RESOURCE_TYPE = "Custom::Guard"

KEPT = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Of everything that holds data: it outlives its stack and its replacement. Only the very stack that fails to
be created takes it along, since it is empty then.
"""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A value that decides whether CloudFormation replaces something."""

    value: str
    """May be a token; "" where an id stands for one of ours."""
    may: Literal["changes", "alone", "grows", "adopts", "never"]
    """changes freely; changes alone, with no other value; grows, as a number, and alone; adopts: from "" to
    an id, the own resource being retained then; never changes.
    """
    safe_way: str = ""
    """What to type instead, in a sentence or two; `{old}` and `{new}` are filled in."""


class Guard(Construct):
    """Receives every create-only value of its stack, and refuses an update that changes one.

    CloudFormation updates it before what depends on it (`protect`), so a refusal comes before anything was
    touched. It names the flag, both values and the safe way. A rollback always passes.

    Args:
        values: by name of the flag.
    """

    def __init__(self, scope: Construct, id_: str, *, values: Mapping[str, Kept]) -> None:
        super().__init__(scope, id_)
        # One group for both functions, made before either: one that is called first makes its own.
        self._log = logs.LogGroup(self, "Log", retention=logs.RetentionDays.THREE_MONTHS)
        function = self._function()
        provider = cr.Provider(self, "Provider", on_event_handler=function, log_group=self._log)
        acknowledge_provider(provider)
        self.resource = CustomResource(
            self,
            "Values",
            service_token=provider.service_token,
            resource_type=RESOURCE_TYPE,
            # Of a function that never answers; an hour without it.
            service_timeout=Duration.minutes(10),
            properties={"Values": {name: asdict(kept) for name, kept in values.items()}},
        )
        # The function's rights must be there before its first call.
        self.resource.node.add_dependency(function)

    def protect(self, *holders: Construct) -> None:
        """Let CloudFormation ask the guard before it touches anything in these."""
        for holder in holders:
            holder.node.add_dependency(self.resource)

    def _function(self) -> lambda_.Function:
        function = lambda_.Function(
            self,
            "OnEvent",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler="handler.on_event",
            code=lambda_.Code.from_asset(str(GUARD_CODE), exclude=["**/__pycache__", "**/.*"]),
            # It may ask for two minutes whether the stack rolls back.
            timeout=Duration.minutes(5),
            memory_size=256,
            log_group=self._log,
        )
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["cloudformation:DescribeStacks"], resources=[Stack.of(self).stack_id]
            )
        )
        acknowledge_function(function)
        return function
