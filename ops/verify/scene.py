"""The deployed cluster as the checks see it; an answer that several checks need is read once."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ops.account.clusters import Cluster, describe_cluster
from ops.account.head_node import HeadNode, find_head_node
from ops.account.session import ClientOf, every, if_there, local_endpoint
from ops.account.stacks import read_resources
from ops.plan.deployed import read_cluster_config
from ops.usage import OpsError
from training_cluster.catalog.families import load_base

Say = Callable[[str], None]
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A deployed cluster, the clients of its account, and the answers so far."""

    cluster: Cluster
    client: ClientOf
    say: Say
    """Receives lines about waits of more than a few seconds."""
    nodes: int = 0
    """Number of compute nodes for the checks that start some."""
    partition: str | None = None
    """Partition of these nodes; None for Slurm's default."""
    limit_min: int = 60
    """Time limit of each job on them."""
    jobs: list[tuple[str, str]] = field(default_factory=list)
    """Id and WORKLOAD/RUN of each job that was started."""
    _answers: dict[str, Any] = field(default_factory=dict)

    @property
    def is_rehearsal(self) -> bool:
        """True where a local AWS answers."""
        return bool(local_endpoint(self.client))

    @property
    def head_node(self) -> HeadNode:
        """The head node. Raises OpsError without one."""
        return self.once("head node", lambda: find_head_node(self.cluster.name, self.client))

    @property
    def instance(self) -> dict[str, Any]:
        """The head node as EC2 describes it. Raises OpsError without one, and botocore's errors."""
        id_ = self.head_node.instance_id
        answer = self.once("instance", lambda: self.client("ec2").describe_instances(InstanceIds=[id_]))
        found: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
        return found

    @property
    def inspected(self) -> dict[str, str]:
        """Facts that inspect-head-node.sh prints. Raises OpsError and botocore's errors."""
        base = load_base()
        arguments = ("inspect-head-node.sh", base.shared_dir, base.efs_dir)

        def ask() -> dict[str, str]:
            lines = self.head_node.run_script(*arguments, reads_only=True).splitlines()
            return {key: value.strip() for key, _, value in (line.partition(" ") for line in lines)}

        return self.once("inspected", ask)

    @property
    def slurm_config(self) -> dict[str, str]:
        """Settings of the running slurmctld. Raises OpsError and botocore's errors."""

        def ask() -> dict[str, str]:
            said = self.head_node.run("scontrol", "show", "config", reads_only=True)
            pairs = (line.partition("=") for line in said.splitlines())
            return {key.strip(): value.strip() for key, equals, value in pairs if equals}

        return self.once("slurm", ask)

    @property
    def config(self) -> Mapping[str, Any]:
        """The deployed cluster config. Raises OpsError without one, and botocore's errors."""
        found = self.once("config", lambda: read_cluster_config(self.cluster.name, self.client))
        if found is None:
            raise OpsError(f"{self.cluster.name} has no cluster config")
        return found

    @property
    def idle_min(self) -> int:
        """Minutes without work after which a node ends, by the deployed config; negative for never.

        Raises OpsError without a config, and botocore's errors.
        """
        return int(self.config["Scheduling"]["SlurmSettings"]["ScaledownIdletime"])

    def events(self, stack: str) -> list[dict[str, Any]]:
        """Return the events of a stack; none for a stack that does not exist. Raises botocore's errors."""
        events = every(self.client("cloudformation"), "describe_stack_events", "StackEvents", StackName=stack)
        return self.once(f"events of {stack}", lambda: if_there(lambda: [*events]) or [])

    def ids(self, stack: str, type_: str) -> list[str]:
        """Return the physical ids of a stack's resources of a type. Raises botocore's errors."""
        cloudformation = self.client("cloudformation")
        found = self.once(f"resources of {stack}", lambda: read_resources(stack, {}, cloudformation))
        return [each.physical_id for each in found if each.type == type_]

    def stack(self, name: str) -> dict[str, Any]:
        """Return a stack as CloudFormation describes it. Raises botocore's errors."""
        describe = self.client("cloudformation").describe_stacks
        return self.once(f"stack {name}", lambda: describe(StackName=name)["Stacks"][0])

    def uptime_h(self) -> float:
        """Return the hours since the head node was launched. Raises OpsError and botocore's errors."""
        launched: datetime.datetime = self.instance["LaunchTime"]
        return (datetime.datetime.now(datetime.UTC) - launched).total_seconds() / 3600

    def once(self, name: str, ask: Callable[[], Answer]) -> Answer:
        """Return an answer, which is asked for once. An error is kept, too, since a head node may hang."""
        if name not in self._answers:
            try:
                self._answers[name] = ask()
            except Exception as error:
                self._answers[name] = error
                raise
        found: Answer | Exception = self._answers[name]
        if isinstance(found, Exception):
            raise found
        return found


def open_scene(cluster_name: str, client: ClientOf, say: Say, *, nodes: int = 0) -> Scene:
    """Find a cluster. Raises OpsError if there is none, and botocore's errors."""
    return Scene(cluster=describe_cluster(cluster_name, client), client=client, say=say, nodes=nodes)


class UnseenError(OpsError):
    """A check cannot look, and the message is its reason."""
