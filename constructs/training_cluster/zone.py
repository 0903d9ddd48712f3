"""The network's zone: a custom resource that chooses it at deploy time, and keeps it."""

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
from training_cluster.layer import ARCHITECTURE, RUNTIME

ZONE_CODE = Path(__file__).resolve().parents[2] / "assets" / "compute_zone"

RESOURCE_TYPE = "Custom::ComputeZone"


class ComputeZone(Construct):
    """One zone for everything: the reservation's, or the one asked for, or the first that has all types.

    An update keeps it, or fails before anything is touched: its inputs are the only ones of NetworkStack that
    follow a cluster's flags.

    Args:
        zone: auto, a zone's name or its id.
        instance_types: what the zone has to offer.
        reservation_id: cr-... whose zone it has to be.

    Attributes:
        id: the zone's id (a token): the same place in every account.
        name: the zone's name in this account (a token).
    """

    def __init__(
        self, scope: Construct, id_: str, *, zone: str, instance_types: list[str], reservation_id: str | None
    ) -> None:
        super().__init__(scope, id_)
        self._log = logs.LogGroup(self, "Log", retention=logs.RetentionDays.THREE_MONTHS)
        provider = cr.Provider(self, "Provider", on_event_handler=self._function(), log_group=self._log)
        acknowledge_provider(provider)
        resource = CustomResource(
            self,
            "Zone",
            service_token=provider.service_token,
            resource_type=RESOURCE_TYPE,
            # Of a function that never answers; an hour without it.
            service_timeout=Duration.minutes(10),
            properties={
                "Zone": zone,
                "InstanceTypes": instance_types,
                "ReservationId": reservation_id or "",
            },
        )
        self.id = resource.get_att_string("Id")
        self.name = resource.get_att_string("Name")

    def _function(self) -> lambda_.Function:
        function = lambda_.Function(
            self,
            "OnEvent",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler="handler.on_event",
            code=lambda_.Code.from_asset(str(ZONE_CODE), exclude=["**/__pycache__", "**/.*"]),
            role=self._role(),
            # A throttled call is repeated for up to two minutes.
            timeout=Duration.minutes(8),
            memory_size=256,
            log_group=self._log,
        )
        acknowledge_runtime(function)
        return function

    def _role(self) -> iam.Role:
        stack = Stack.of(self)
        questions = ("AvailabilityZones", "InstanceTypeOfferings", "CapacityReservations")
        statements = [
            # EC2 knows no resource of these actions (Service Authorization Reference).
            iam.PolicyStatement(actions=[f"ec2:Describe{each}" for each in questions], resources=["*"]),
            iam.PolicyStatement(actions=["cloudformation:DescribeStacks"], resources=[stack.stack_id]),
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[self._log.log_group_arn]
            ),
        ]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Asks EC2 which zone has the instance types",
            # Inline, so that the rights are there before the first call and after the last.
            inline_policies={"Zone": iam.PolicyDocument(statements=statements)},
        )
        acknowledge_wildcards(role, ["*"], "EC2 knows no resource of these actions")
        return role
