"""CloudFormation, emulated for the stack of one cluster; runs in .venv-pcluster.

It acts as CloudFormation and CDK's Provider framework: a Create whose on_event failed gets no Delete; one
whose is_complete failed does. A failed Update is followed by an Update back.
"""

import importlib
import json
import os
import time
import uuid
from collections.abc import Callable
from typing import Any

import boto3
from framework import Event, Framework, Outcome, sleep

_ACCOUNT, _REGION = "123456789012", os.environ["AWS_REGION"]
_REST_TIMEOUT_S = 60.0
_POLL_S = 0.1
_MOVING = {"STOP_REQUESTED", "STOPPING", "START_REQUESTED", "STARTING"}
_DURING = {"Create": "CREATE_IN_PROGRESS", "Update": "UPDATE_IN_PROGRESS", "Delete": "DELETE_IN_PROGRESS"}

AWSApi = importlib.import_module("pcluster.aws.aws_api").AWSApi
Cache = importlib.import_module("pcluster.aws.common").Cache
Cluster = importlib.import_module("pcluster.models.cluster").Cluster


class Stack:
    """The stack of one cluster, as our TrainingClusterStack on AWS.

    Args:
        watched: context manager around the provider's own calls.
        name: name of the stack; derived from the cluster's name by default.
    """

    def __init__(self, cluster_name: str, watched: Callable[[], Any], *, name: str | None = None) -> None:
        self.cluster_name, self._name = cluster_name, name or f"{cluster_name}-parent"
        self.status, self.reasons = "NONE", list[str]()
        self._id = ""
        self._physical_id: str | None = None
        self._properties: dict[str, str] | None = None
        self._former: dict[str, str] | None = None
        self._sent = list[Event]()
        self._begun = Event()
        self.ignores_requests = False
        """True while its head node ignores requests to the fleet."""
        self._clients = {name: boto3.client(name) for name in ("cloudformation", "dynamodb")}
        self.parameter = f"/training-cluster/stacks/{self._name}/progress"
        self.framework = Framework(parameter=self.parameter, watched=watched, come_to_rest=self.come_to_rest)

    def deploy(self, config: dict[str, Any], **properties: str) -> None:
        """Create or update the stack; ends in CREATE_COMPLETE, UPDATE_COMPLETE or a rolled back state."""
        wanted = self._wanted(config, **properties)
        if self.status in ("NONE", "ROLLBACK_COMPLETE", "DELETE_COMPLETE"):
            self._create(wanted)
        elif self.status == "ROLLBACK_FAILED":  # the CDK CLI deletes such a stack, then creates it again
            self.destroy()
            self.deploy(config, **properties)
        elif self.status.endswith("_COMPLETE"):
            self._update(wanted)
        else:
            raise RuntimeError(f"CloudFormation updates no stack that is {self.status}")

    def _create(self, wanted: dict[str, str]) -> None:
        self._id, self._physical_id = "", None
        self._created(self._request("Create", wanted), wanted)

    def _created(self, outcome: Outcome, wanted: dict[str, str]) -> None:
        if outcome.failure is None:
            self._physical_id, self._properties = outcome.physical_id, wanted
            self.status = "CREATE_COMPLETE"
            return
        self.reasons.append(outcome.failure)
        self.status = "ROLLBACK_COMPLETE"
        if outcome.physical_id:  # otherwise the framework knows that nothing was created
            self._physical_id = outcome.physical_id
            undone = self._request("Delete", wanted)
            if undone.failure:
                self.reasons.append(undone.failure)
                self.status, self._properties = "ROLLBACK_FAILED", wanted

    def _update(self, wanted: dict[str, str]) -> None:
        if wanted == self._properties:
            return
        former = self._properties or {}
        outcome = self._request("Update", wanted, OldResourceProperties=former)
        if outcome.failure is None:
            self._properties, self._former, self.status = wanted, former, "UPDATE_COMPLETE"
            return
        self.reasons.append(outcome.failure)
        self._undo(former, OldResourceProperties=wanted)

    def _undo(self, former: dict[str, str], **more: Any) -> None:
        event = self._event("Update", former, **more)
        undone = self.framework.run(event, stack_status="UPDATE_ROLLBACK_IN_PROGRESS")
        self.status = "UPDATE_ROLLBACK_FAILED" if undone.failure else "UPDATE_ROLLBACK_COMPLETE"
        self.reasons += [undone.failure] if undone.failure else []

    def destroy(self) -> None:
        """Delete the stack; ends in DELETE_COMPLETE or DELETE_FAILED."""
        outcome = self._request("Delete", self._properties or {})
        self.status = "DELETE_FAILED" if outcome.failure else "DELETE_COMPLETE"
        if outcome.failure:
            self.reasons.append(outcome.failure)
            return
        self._properties = None

    def begin_create(self, config: dict[str, Any], *, polls: int, refused: bool = False) -> None:
        """Start a Create and poll it a number of times; with `refused`, on_event must refuse it."""
        event = self._event("Create", self._wanted(config))
        try:
            event = self.framework.begin(event, stack_status=_DURING["Create"], polls=polls)
        except RuntimeError:
            if not refused:
                raise
            event["PhysicalResourceId"] = self.cluster_name
        self._begun = event
        self._properties, self._physical_id = event["ResourceProperties"], event["PhysicalResourceId"]

    def finish_create(self) -> None:
        """Poll the started Create until it ends."""
        outcome = self.framework.go_on(self._begun, stack_status=_DURING["Create"])
        self._created(outcome, self._begun["ResourceProperties"])

    def begin_update(self, config: dict[str, Any], *, polls: int) -> None:
        """Start an Update and poll it a number of times."""
        self._former = self._properties
        event = self._event("Update", self._wanted(config))
        self.framework.begin(event, stack_status=_DURING["Update"], polls=polls)
        self.come_to_rest()

    def roll_back(self) -> None:
        """Undo the last update, as after a failure of another resource of the stack."""
        former = self._former or self._properties or {}
        self._undo(former)
        self._properties = former

    def replay(self, number: int) -> None:
        """Deliver the nth event once more, as Lambda may; CloudFormation ignores a second answer."""
        self.framework.run(self._sent[number], stack_status=self.status)

    def _wanted(self, config: dict[str, Any], **properties: str) -> dict[str, str]:
        return {"ClusterName": self.cluster_name, "ClusterConfiguration": json.dumps(config), **properties}

    def _event(self, kind: str, properties: dict[str, str], **more: Any) -> Event:
        self._id = self._id or (
            f"arn:aws:cloudformation:{_REGION}:{_ACCOUNT}:stack/{self._name}/{uuid.uuid4()}"
        )
        known: dict[str, str] = {"PhysicalResourceId": self._physical_id} if self._physical_id else {}
        return {
            "RequestType": kind,
            "RequestId": str(uuid.uuid4()),
            "StackId": self._id,
            "ResourceProperties": properties,
            **known,
            **more,
        }

    def _request(self, kind: str, properties: dict[str, str], **more: Any) -> Outcome:
        self._sent.append(self._event(kind, properties, **more))
        return self.framework.run(self._sent[-1], stack_status=_DURING[kind])

    def come_to_rest(self) -> None:
        """Wait until neither the cluster's stack nor its fleet is changing.

        Raises:
            RuntimeError: it takes too long, which is a fault of the local AWS.
        """
        deadline = time.monotonic() + _REST_TIMEOUT_S
        while self.stack_status().endswith("_IN_PROGRESS") or self._fleet_moves():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.cluster_name} keeps changing: {self.stack_status()}")
            sleep(_POLL_S)

    def _fleet_moves(self) -> bool:
        return not self.ignores_requests and self.fleet() in _MOVING

    def stack_status(self) -> str:
        """Read the status of the cluster's own stack; NONE if there is no stack."""
        client = self._clients["cloudformation"]
        try:
            return str(client.describe_stacks(StackName=self.cluster_name)["Stacks"][0]["StackStatus"])
        except client.exceptions.ClientError:
            return "NONE"

    def fleet(self) -> str:
        """Read the status of the compute fleet; NONE if there is no fleet."""
        client = self._clients["dynamodb"]
        try:
            item = client.get_item(
                TableName=f"parallelcluster-{self.cluster_name}", Key={"Id": {"S": "COMPUTE_FLEET"}}
            )
        except client.exceptions.ResourceNotFoundException:
            return "NONE"
        return str(item["Item"]["Data"]["M"]["status"]["S"]) if "Item" in item else "NONE"

    def capacity(self) -> str:
        """Read the capacity type of the cluster's first queue, in the config of its stack."""
        Cache.clear_all()
        AWSApi.reset()
        config: dict[str, Any] = Cluster(self.cluster_name).config.source_config
        return str(config["Scheduling"]["SlurmQueues"][0]["CapacityType"])
