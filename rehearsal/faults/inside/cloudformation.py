"""Runs in .venv-pcluster: plays CloudFormation and CDK's Provider framework around the real handler.

As they do: a Create whose on_event failed gets no Delete; one whose is_complete failed does. A failed
Update is followed by an Update back. The clock is fake: between two polls the cluster's stack and fleet come
to rest, and nobody waits.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3

_ACCOUNT, _REGION = "123456789012", os.environ["AWS_REGION"]
_MAX_POLLS, _POLL_INTERVAL = 116, datetime.timedelta(seconds=30)
"""As cluster.py tells the framework; here each poll finds the last step done."""
_REST_TIMEOUT_S = 60.0
_POLL_S = 0.1
_MOVING = {"STOP_REQUESTED", "STOPPING", "START_REQUESTED", "STARTING"}
_sleep = time.sleep
time.sleep = lambda _seconds: None

# The provider's own modules; its `library` sets HOME before it loads ParallelCluster.
handler: Any = importlib.import_module("handler")
parent: Any = importlib.import_module("parent")
record: Any = importlib.import_module("record")
AWSApi = importlib.import_module("pcluster.aws.aws_api").AWSApi
Cache = importlib.import_module("pcluster.aws.common").Cache
Cluster = importlib.import_module("pcluster.models.cluster").Cluster


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one request ended."""

    physical_id: str | None
    failure: str | None = None


class Stack:
    """The stack of one cluster: what our TrainingClusterStack is on AWS.

    Args:
        watched: context of the provider's own calls.
    """

    def __init__(self, cluster_name: str, watched: Callable[[], Any]) -> None:
        self.cluster_name, self._watched = cluster_name, watched
        self.status, self.reasons = "NONE", list[str]()
        self._id = ""
        self._physical_id: str | None = None
        self._properties: dict[str, str] | None = None
        self._former: dict[str, str] | None = None
        self._dies_at, self._repeats = 0, False
        self.is_deaf = False
        """Whether its head node does not hear what is asked of the fleet."""
        self._clients = {name: boto3.client(name) for name in ("cloudformation", "dynamodb")}
        self.parameter = f"/training-cluster/stacks/{cluster_name}-parent/progress"

    def deploy(self, config: dict[str, Any], **properties: str) -> None:
        """Create or update; ends in CREATE_COMPLETE, UPDATE_COMPLETE or a rolled back state."""
        wanted = self._wanted(config, **properties)
        if self.status in ("NONE", "ROLLBACK_COMPLETE", "DELETE_COMPLETE"):
            self._create(wanted)
        elif self.status == "ROLLBACK_FAILED":  # the CDK CLI deletes such a stack before it makes it again
            self.destroy()
            self.deploy(config, **properties)
        elif self.status.endswith("_COMPLETE"):
            self._update(wanted)
        else:
            raise RuntimeError(f"CloudFormation updates no stack that is {self.status}")

    def _create(self, wanted: dict[str, str]) -> None:
        guid = uuid.uuid4()
        self._id = f"arn:aws:cloudformation:{_REGION}:{_ACCOUNT}:stack/{self.cluster_name}-parent/{guid}"
        self._physical_id = None
        outcome = self._request("Create", wanted)
        if outcome.failure is None:
            self._physical_id, self._properties = outcome.physical_id, wanted
            self.status = "CREATE_COMPLETE"
            return
        self.reasons.append(outcome.failure)
        self.status = "ROLLBACK_COMPLETE"
        if outcome.physical_id:  # else the framework knows that nothing was made
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
        undone = self._request("Update", former, rolls_back=True, OldResourceProperties=wanted)
        self.status = "UPDATE_ROLLBACK_FAILED" if undone.failure else "UPDATE_ROLLBACK_COMPLETE"
        self.reasons += [undone.failure] if undone.failure else []

    def destroy(self) -> None:
        """Delete; ends in DELETE_COMPLETE or DELETE_FAILED."""
        outcome = self._request("Delete", self._properties or {})
        self.status = "DELETE_FAILED" if outcome.failure else "DELETE_COMPLETE"
        if outcome.failure:
            self.reasons.append(outcome.failure)
            return
        self._properties = None

    def begin_create(self, config: dict[str, Any], *, polls: int, refused: bool = False) -> None:
        """Start a Create, poll it some times, and leave it there; `refused`: on_event has to refuse it."""
        event = self._event("Create", self._wanted(config))
        try:
            answer = self._call("on_event", event)
        except RuntimeError:
            if not refused:
                raise
            answer = {"PhysicalResourceId": self.cluster_name}
        self._properties, self._physical_id = event["ResourceProperties"], answer["PhysicalResourceId"]
        for _ in range(polls):
            self._call("is_complete", event | answer)

    def begin_update(self, config: dict[str, Any], *, polls: int) -> None:
        """Start an Update, poll it some times, and leave it there."""
        self._former = self._properties
        event = self._event("Update", self._wanted(config))
        event |= self._call("on_event", event)
        for _ in range(polls):
            self._call("is_complete", event)
            self.come_to_rest()

    def roll_back(self) -> None:
        """Undo the last update, since another resource of the stack failed."""
        former = self._former or self._properties or {}
        undone = self._request("Update", former, rolls_back=True)
        self.status = "UPDATE_ROLLBACK_FAILED" if undone.failure else "UPDATE_ROLLBACK_COMPLETE"
        self.reasons += [undone.failure] if undone.failure else []
        self._properties = former

    @contextmanager
    def dying(self, at: int) -> Iterator[None]:
        """The function dies after the work of its nth poll, once."""
        self._dies_at = at
        try:
            yield
        finally:
            self._dies_at = 0

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Each event comes twice."""
        self._repeats = True
        try:
            yield
        finally:
            self._repeats = False

    def _wanted(self, config: dict[str, Any], **properties: str) -> dict[str, str]:
        return {
            "ClusterName": self.cluster_name,
            "ClusterConfiguration": json.dumps(config),
            **properties,
        }

    def _event(self, kind: str, properties: dict[str, str], **more: Any) -> dict[str, Any]:
        if not self._id:
            guid = uuid.uuid4()
            self._id = f"arn:aws:cloudformation:{_REGION}:{_ACCOUNT}:stack/{self.cluster_name}-parent/{guid}"
        known: dict[str, str] = {"PhysicalResourceId": self._physical_id} if self._physical_id else {}
        return {
            "RequestType": kind,
            "RequestId": str(uuid.uuid4()),
            "StackId": self._id,
            "ResourceProperties": properties,
            **known,
            **more,
        }

    def _request(
        self, kind: str, properties: dict[str, str], *, rolls_back: bool = False, **more: Any
    ) -> Outcome:
        event, answer = self._event(kind, properties, **more), dict[str, Any]()
        began = datetime.datetime.now(datetime.UTC)
        asked, real_now = parent.rolls_back, record.now
        parent.rolls_back = lambda stack_id: asked(stack_id) or rolls_back
        try:
            for _ in range(2 if self._repeats else 1):
                answer = self._call("on_event", event)
            for poll in range(1, _MAX_POLLS):
                passed = began + poll * _POLL_INTERVAL
                record.now = lambda timespec="seconds", at=passed: at.isoformat(timespec=timespec)
                done = self._call("is_complete", event | answer)["IsComplete"]
                if poll == self._dies_at:
                    self._dies_at = 0
                    raise RuntimeError("Runtime exited with error: signal: killed")
                if self._repeats:
                    done = self._call("is_complete", event | answer)["IsComplete"] and done
                if done:
                    return Outcome(physical_id=answer["PhysicalResourceId"])
                self.come_to_rest()
        except Exception as error:  # whatever a Lambda raises, CloudFormation takes for a failure
            return Outcome(physical_id=answer.get("PhysicalResourceId"), failure=f"{kind}: {error}")
        finally:
            parent.rolls_back, record.now = asked, real_now
        return Outcome(physical_id=answer["PhysicalResourceId"], failure=f"{kind}: it did not end in time")

    def _call(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        os.environ["PROGRESS_PARAMETER"] = self.parameter
        with self._watched():
            answer: dict[str, Any] = getattr(handler, function)(event, None)
        return answer

    def come_to_rest(self) -> None:
        """Wait until neither the cluster's stack nor its fleet is on its way somewhere.

        Raises:
            RuntimeError: it takes too long: a fault of the local AWS.
        """
        deadline = time.monotonic() + _REST_TIMEOUT_S
        while self.stack_status().endswith("_IN_PROGRESS") or self._fleet_moves():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.cluster_name} does not come to rest: {self.stack_status()}")
            _sleep(_POLL_S)

    def _fleet_moves(self) -> bool:
        return not self.is_deaf and self.fleet() in _MOVING

    def stack_status(self) -> str:
        """Of the cluster's own stack; NONE when there is none."""
        client = self._clients["cloudformation"]
        try:
            return str(client.describe_stacks(StackName=self.cluster_name)["Stacks"][0]["StackStatus"])
        except client.exceptions.ClientError:
            return "NONE"

    def fleet(self) -> str:
        """Status of the compute fleet; NONE when there is none."""
        client = self._clients["dynamodb"]
        try:
            item = client.get_item(
                TableName=f"parallelcluster-{self.cluster_name}", Key={"Id": {"S": "COMPUTE_FLEET"}}
            )
        except client.exceptions.ResourceNotFoundException:
            return "NONE"
        return str(item["Item"]["Data"]["M"]["status"]["S"]) if "Item" in item else "NONE"

    def capacity(self) -> str:
        """How the cluster's first queue buys its nodes, in the config that its stack was made from."""
        Cache.clear_all()
        AWSApi.reset()
        config: dict[str, Any] = Cluster(self.cluster_name).config.source_config
        return str(config["Scheduling"]["SlurmQueues"][0]["CapacityType"])
