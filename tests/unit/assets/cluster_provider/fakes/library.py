"""A fake of the provider's `library`: one cluster of ParallelCluster or none, as a test sets it."""

import dataclasses
import json
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NAME, STACK, ANOTHER_STACK = "training", "stack/ours", "stack/theirs"
OWNER_TAG = "training-cluster:stack-id"
HEAD_NODE = "i-0123"

# What the library says of a change that it refuses (pcluster/config/update_policy.py).
STOP = (
    "All compute nodes must be stopped. Stop the compute fleet with the pcluster update-compute-fleet command"
)
OR_DRAIN = "All compute nodes must be stopped or QueueUpdateStrategy must be set. Stop the compute fleet"
OR_TERMINATE = "All compute nodes must be stopped or QueueUpdateStrategy must be set to TERMINATE. Stop"
LOGIN_NODES = f"{OR_DRAIN.partition('.')[0]}. All login nodes must be stopped. Stop the compute fleet"
NEVER = "Update actions are not currently supported for the 'InstanceType' parameter"
CHANGE = "CapacityType: ONDEMAND -> SPOT"
# Of these statuses of a stack, the library starts and stops the compute fleet.
WORKING = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}
_CHANGING = ("create", "update", "delete", "STOP_REQUESTED", "START_REQUESTED")


def config(capacity: str = "ONDEMAND") -> dict[str, Any]:
    """Return a small cluster config."""
    return {"Tags": [], "Scheduling": {"SlurmSettings": {}, "SlurmQueues": [{"CapacityType": capacity}]}}


def refused_change(message: str, *, parameter: str = "SlurmQueues[q].CapacityType") -> dict[str, Any]:
    """Return one entry of the library's answer to an update that it refuses."""
    values = {"current_value": "ONDEMAND", "requested_value": "SPOT"}
    return {"parameter": parameter, "message": message, **values}


@dataclass(frozen=True)
class Fault:
    """An answer that is an error."""

    error: Exception
    late: bool
    """Whether what was asked is done all the same."""


class FakeLibrary(types.ModuleType):
    """A fake of `library`: one cluster or none, the calls so far, and faults on request."""

    def __init__(self, *, errors: Any, cluster_state: Any) -> None:
        super().__init__("library")
        self.errors, self.cluster_state = errors, cluster_state
        self.cluster: Any = None
        self.config: dict[str, Any] = {}
        self.checked: dict[str, Any] | None = None
        """The config that the last dry run of a create passed."""
        self.asked: list[str] = []
        self.wants: list[dict[str, Any]] = []
        """Refused changes of every update, for as long as the fleet has not stopped."""
        self.impossible: list[dict[str, Any]] = []
        """Refused changes of every update, whatever the fleet does."""
        self.validation: tuple[str, ...] = ()
        self.fleet, self.running = "RUNNING", 0
        self.events: list[dict[str, Any]] = []
        self.streams: dict[str, str] = {}
        self.files = True
        """Whether the files are there that the cluster's stack is made from."""
        self.meanwhile: Callable[[], object] | None = None
        """Happens once, in the middle of the next `create` or `update`."""
        self._faults: dict[str, list[Fault | None]] = {}
        self._former: dict[str, Any] = {}
        self._time = 0

    @property
    def changes(self) -> list[str]:
        """Return the calls that change something, in order; `update` only if it was possible."""
        return [each for each in self.asked if each in _CHANGING]

    def fail(
        self, operation: str, error: Exception, *, times: int = 1, after: int = 0, late: bool = False
    ) -> None:
        """Answer calls with an error, `after` so many that pass; `late`: having done what was asked.

        A cluster that is made so has lost its files: the library removes them when it gets no answer.
        """
        self._faults.setdefault(operation, []).extend([*[None] * after, *[Fault(error, late)] * times])

    def exists(self, status: str = "CREATE_COMPLETE", *, owner: str = STACK, **more: Any) -> None:
        """Create a cluster, by default with the usual config and of our stack."""
        self._begin(config() | {"Tags": [{"Key": OWNER_TAG, "Value": owner}]})
        self.becomes(status, **more)

    def becomes(self, status: str, **more: Any) -> None:
        """Set the next status of the stack."""
        if status == "UPDATE_FAILED":
            self.config = self._former or self.config
            more = {"stack_status": "UPDATE_ROLLBACK_COMPLETE"} | more
        fields = {"status": status, "stack_status": status} | more
        self.cluster = dataclasses.replace(self.cluster, **fields)

    def is_gone(self) -> None:
        """Remove the cluster."""
        self.cluster = None

    def _now(self) -> str:
        self._time += 1
        return f"2026-01-01T00:00:{self._time:02}+00:00"

    def _begin(self, new: dict[str, Any]) -> None:
        self.config, self.files, now = new, True, self._now()
        self.cluster = self.cluster_state.ClusterState(
            status="CREATE_IN_PROGRESS",
            tags={each["Key"]: each["Value"] for each in new["Tags"]},
            failures=(),
            head_node_instance_id=HEAD_NODE,
            stack_status="CREATE_IN_PROGRESS",
            created=now,
            changed=now,
        )

    def _do(self, operation: str, effect: Callable[[], Any]) -> Any:
        self.asked.append(operation)
        faults = self._faults.get(operation)
        fault = faults.pop(0) if faults else None
        done = effect() if not fault or fault.late else None
        if fault:
            self.files = self.files and not (fault.late and operation == "create")
            raise fault.error
        return done

    def _refuse(self, message: str, changes: list[dict[str, Any]] | None = None) -> None:
        content: dict[str, Any] = {"message": message}
        raise self.errors.RefusedError(content | ({"update_validation_errors": changes} if changes else {}))

    def _is_named(self, cluster_name: str) -> bool:
        return self.cluster is not None and cluster_name == NAME

    def _needs(self, cluster_name: str) -> None:
        if not self._is_named(cluster_name):
            raise self.errors.ClusterNotFoundError(f"Cluster '{cluster_name}' does not exist")

    def find(self, cluster_name: str) -> Any:
        return self._do("find", lambda: self.cluster if self._is_named(cluster_name) else None)

    def check_create(self, cluster_name: str, config: dict[str, Any]) -> Any:
        def effect() -> Any:
            if self._is_named(cluster_name):
                self._refuse(f"Cluster {cluster_name} already exists.")
            self.checked = config
            return self.cluster_state.DryRun(validation=self.validation, changes=())

        return self._do("check_create", effect)

    def create(self, cluster_name: str, config: dict[str, Any]) -> None:
        def effect() -> None:
            self._let_happen()
            if self._is_named(cluster_name):
                self._refuse(f"Cluster {cluster_name} already exists.")
            self._begin(config)

        self._do("create", effect)

    def _let_happen(self) -> None:
        if self.meanwhile:
            happens, self.meanwhile = self.meanwhile, None
            happens()

    def check_update(self, cluster_name: str, config: dict[str, Any]) -> Any:
        def effect() -> Any:
            if not self._would_change(cluster_name, config):
                return None
            return self.cluster_state.DryRun(validation=self.validation, changes=(CHANGE,))

        return self._do("check_update", effect)

    def update(self, cluster_name: str, config: dict[str, Any]) -> bool:
        def effect() -> bool:
            self._let_happen()
            if not self._would_change(cluster_name, config):
                return False
            self._former, self.config = self.config, config
            self.becomes("UPDATE_IN_PROGRESS", changed=self._now())
            return True

        return bool(self._do("update", effect))

    def _would_change(self, cluster_name: str, config: dict[str, Any]) -> bool:
        self._needs(cluster_name)
        if _without_strategy(config) == _without_strategy(self.config):
            self.asked[-1] += " without changes"
            return False
        refused = self.impossible + (self.wants if self.fleet != "STOPPED" else [])
        if refused:
            self.asked[-1] += " refused"
            self._refuse("Update failure", refused)
        return True

    def delete(self, cluster_name: str) -> None:
        def effect() -> None:
            self._needs(cluster_name)
            self.becomes("DELETE_IN_PROGRESS")

        self._do("delete", effect)

    def fleet_status(self, cluster_name: str) -> str:
        return str(self._read("fleet_status", cluster_name, lambda: self.fleet))

    def request_fleet(self, cluster_name: str, status: str) -> None:
        def effect() -> None:
            self._needs(cluster_name)
            if self.cluster.stack_status not in WORKING:
                self._refuse(
                    f"Cannot start/enable compute fleet while stack is in {self.cluster.stack_status}."
                )
            self.fleet = status

        self._do(status, effect)

    def running_compute_nodes(self, cluster_name: str) -> int:
        return int(self._read("running_compute_nodes", cluster_name, lambda: self.running))

    def stack_events(self, cluster_name: str) -> list[dict[str, Any]]:
        return list(self._read("stack_events", cluster_name, lambda: self.events))

    def log_group(self, cluster_name: str) -> str:
        return str(self._read("log_group", cluster_name, lambda: f"/aws/parallelcluster/{cluster_name}-1"))

    def stored_config(self, cluster_name: str) -> dict[str, Any] | None:
        there = self._is_named(cluster_name) and self.files
        return self._do("stored_config", lambda: self.config if there else None)  # type: ignore[no-any-return]

    def head_node_log_streams(self, cluster_name: str) -> list[str]:
        return list(self._read("head_node_log_streams", cluster_name, lambda: self.streams))

    def log_tail(self, cluster_name: str, stream: str, *, lines: int) -> str:
        text = self._read("log_tail", cluster_name, lambda: self.streams[stream])
        return "\n".join(text.splitlines()[-lines:])

    def _read(self, operation: str, cluster_name: str, answer: Callable[[], Any]) -> Any:
        def effect() -> Any:
            self._needs(cluster_name)
            return answer()

        return self._do(operation, effect)


def _without_strategy(given: dict[str, Any]) -> dict[str, Any]:
    """Return the config without QueueUpdateStrategy, which alone is no change to the library."""
    copied: dict[str, Any] = json.loads(json.dumps(given))
    copied["Scheduling"]["SlurmSettings"].pop("QueueUpdateStrategy", None)
    return copied
