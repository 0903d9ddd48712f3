"""A request of CloudFormation, typed: one event of the custom resource."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import record
from cluster_state import ClusterState

# The library's own rule; a physical id that CloudFormation generated does not match it.
_CLUSTER_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,59}")
# Prefix of the keys of our own tags on each cluster; the flag `tags` takes no such key.
_OUR_TAGS = "training-cluster:"
OWNER_TAG = f"{_OUR_TAGS}stack-id"
"""Tag with the id of the CloudFormation stack that made a cluster; others are never changed."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One Create, Update or Delete."""

    kind: str
    """Create, Update or Delete."""
    id: str
    """CloudFormation's RequestId: the same when it sends an event twice."""
    received: str
    """UTC time (ISO 8601) at which on_event got the request: shows which of two requests is later."""
    stack_id: str
    physical_id: str
    """The cluster's name; for a Delete, CloudFormation's generated id if it never got the name."""
    cluster_name: str
    """Name of this stack's cluster."""
    new_name: str
    """Name in the resource's properties; a cluster cannot be renamed."""
    on_busy: str
    """fail, drain or stop: reaction of an update that requires a stopped fleet while compute nodes run."""
    configuration: str
    """The cluster config as JSON text; a Delete does not need it."""
    adopts: bool = False
    """`Record.adopts`, as on_event set it at a Create."""
    fleet_before: str | None = None
    """Status of the compute fleet when on_event got the request; None where no poll needs it."""

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> Request:
        """Read an event in the form in which CDK's Provider framework passes it on."""
        properties, kind = event["ResourceProperties"], event["RequestType"]
        new_name = str(properties["ClusterName"])
        physical_id = str(event.get("PhysicalResourceId", new_name))
        return cls(
            kind=kind,
            id=event["RequestId"],
            received=event.get("Began") or record.now("microseconds"),
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
        """The cluster config with our tag."""
        config: dict[str, Any] = json.loads(self.configuration)
        config["Tags"] = [*config.get("Tags", []), {"Key": OWNER_TAG, "Value": self.stack_id}]
        return config

    @property
    def update_config(self) -> dict[str, Any]:
        """The config of an update. on_busy=drain sets QueueUpdateStrategy, which alone changes nothing."""
        config = self.config
        if self.on_busy == "drain":  # nodes finish their jobs and are then replaced
            config["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] = "DRAIN"
        return config

    def owns(self, state: ClusterState) -> bool:
        """Return True if the requesting stack made this cluster."""
        return state.tags.get(OWNER_TAG) == self.stack_id


def has_own_tags(config: dict[str, Any]) -> bool:
    """Return True if launches tag volumes with the user's tags too, which a policy may require."""
    return any(not str(tag["Key"]).startswith(_OUR_TAGS) for tag in config.get("Tags") or [])
