"""What CloudFormation asks for, typed: one event of the custom resource."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import record
from answers import ClusterState

# The library's own rule; whatever else CloudFormation calls a resource is no cluster.
_CLUSTER_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,59}")
# Begins the keys of the tags that every cluster of ours has; the flag `tags` takes no such key.
_OUR_TAGS = "training-cluster:"
OWNER_TAG = f"{_OUR_TAGS}stack-id"
"""On every cluster of ours: the id of the CloudFormation stack that made it. Nothing else is touched."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One Create, Update or Delete."""

    kind: str
    """Create, Update or Delete."""
    id: str
    """CloudFormation's RequestId: the same when it sends an event twice."""
    began: str
    """UTC time (ISO 8601) at which on_event got it: tells which of two requests came later."""
    stack_id: str
    physical_id: str
    """The cluster's name; of a Delete, what CloudFormation made up if it never got that."""
    cluster_name: str
    """The cluster of this stack."""
    new_name: str
    """The name that the properties ask for; a cluster cannot be renamed."""
    on_busy: str
    """fail, drain or stop: what an update does when it wants a stopped fleet and compute nodes run."""
    configuration: str
    """The cluster config as JSON text; a Delete does without."""
    adopts: bool = False
    """`Record.adopts`, as on_event noted it at a Create."""
    fleet_before: str | None = None
    """Status of the compute fleet when on_event got the request; None where it does not matter."""

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> Request:
        """Read an event, as CDK's Provider framework passes it to on_event and is_complete."""
        properties, kind = event["ResourceProperties"], event["RequestType"]
        new_name = str(properties["ClusterName"])
        physical_id = str(event.get("PhysicalResourceId", new_name))
        return cls(
            kind=kind,
            id=event["RequestId"],
            began=event.get("Began") or record.now("microseconds"),
            stack_id=event["StackId"],
            physical_id=physical_id,
            cluster_name=physical_id if _CLUSTER_NAME.fullmatch(physical_id) else new_name,
            new_name=new_name,
            on_busy=str(properties.get("OnBusy", "fail")),
            configuration=properties.get("ClusterConfiguration", "{}"),
            adopts=bool(event.get("Adopts")),
            fleet_before=event.get("FleetBefore"),
        )

    @property
    def config(self) -> dict[str, Any]:
        """The cluster config, our tag in it."""
        config: dict[str, Any] = json.loads(self.configuration)
        config["Tags"] = [*config.get("Tags", []), {"Key": OWNER_TAG, "Value": self.stack_id}]
        return config

    @property
    def update_config(self) -> dict[str, Any]:
        """The config of an update; how it treats busy nodes steers it and is no change of its own."""
        config = self.config
        if self.on_busy == "drain":  # nodes end their jobs and are then replaced
            config["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] = "DRAIN"
        return config

    def owns(self, state: ClusterState) -> bool:
        """Whether the stack that asks made this cluster."""
        return state.tags.get(OWNER_TAG) == self.stack_id


def has_own_tags(config: dict[str, Any]) -> bool:
    """Tell if launches tag volumes with more than our own tags, which no policy can ask for."""
    return any(not str(tag["Key"]).startswith(_OUR_TAGS) for tag in config.get("Tags") or [])
