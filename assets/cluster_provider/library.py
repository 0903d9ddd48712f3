"""ParallelCluster's own library, typed: four calls, three kinds of error, no stale cache."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from typing import Any

# The library logs and caches under HOME; in Lambda only the temporary folder can be written. Its
# CDK v1 prints a banner for every Node newer than its own tests.
_home = os.path.join(tempfile.gettempdir(), "pcluster-home")  # noqa: PTH118
os.makedirs(_home, exist_ok=True)  # noqa: PTH103
os.environ.update(HOME=_home, XDG_CACHE_HOME=_home, JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION="1")

import pcluster.lib as pc  # noqa: E402
from pcluster.api.errors import ParallelClusterApiException, exception_message  # noqa: E402
from pcluster.aws.aws_api import AWSApi  # noqa: E402
from pcluster.aws.common import AWSClientError, Cache  # noqa: E402

_NOT_FOUND, _THROTTLED, _SERVER_ERROR = 404, 429, 500
_DENIED = {"AccessDenied", "AccessDeniedException", "AuthFailure", "Forbidden", "UnauthorizedOperation"}
_NO_CHANGES = "no changes found"
# The library's words (pcluster/config/update_policy.py) where a stopped fleet is all that is missing.
_STOP_THE_FLEET = "stop the compute fleet"
# One throttled call is no failure: 30 s in all, of the 15 minutes that a function has.
_PAUSES_S = (2, 4, 8, 16)


class ClusterNotFoundError(Exception):
    """No cluster of that name exists in the region."""


class TransientError(Exception):
    """Throttled, or AWS answered with an error of its own: the same call may pass later."""


class RefusedError(Exception):
    """The library refused. `content` is its answer: message, validation errors, change set."""

    def __init__(self, content: dict[str, Any]) -> None:
        super().__init__(str(content.get("message", content)))
        self.content = content

    @property
    def wants_stopped_fleet(self) -> bool:
        """Whether every change that was refused could be made with the compute fleet stopped."""
        refused = self.content.get("update_validation_errors") or []
        return bool(refused) and all(_STOP_THE_FLEET in str(each.get("message")).lower() for each in refused)


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """What `pcluster describe-cluster` says, as far as the provider needs it."""

    status: str
    """clusterStatus: CREATE_COMPLETE, UPDATE_FAILED ..."""
    tags: dict[str, str]
    failures: tuple[dict[str, Any], ...]
    """failureCode and failureReason; only at CREATE_FAILED."""
    head_node_instance_id: str | None
    last_updated: str
    """When its stack was last created or updated."""


def _content(error: BaseException) -> dict[str, Any]:
    content = exception_message(error)
    content = content.to_dict() if hasattr(content, "to_dict") else dict(content)
    if "Unexpected fatal exception" in str(content.get("message")):
        # The library's words for TypeError, OSError and ParameterException: say what it was.
        content["message"] = f"{type(error).__name__}: {error}"
    return content


def _may_pass_later(error: BaseException, code: int | None) -> bool:
    """Whether it is AWS's trouble, not ours: the library answers 500 for everything, denials included."""
    cause: BaseException | None = error
    while cause:
        response = getattr(cause, "response", None) or {}
        aws_code = getattr(cause, "error_code", None) or response.get("Error", {}).get("Code")
        if aws_code in _DENIED:
            return False
        cause = cause.__cause__
    return code in (_THROTTLED, _SERVER_ERROR) or isinstance(error, AWSClientError)


def _call(operation: str, **arguments: Any) -> dict[str, Any]:
    """Call one operation of the library.

    Raises:
        ClusterNotFoundError, TransientError, RefusedError.
    """
    Cache.clear_all()  # a warm Lambda must not answer from its last invocation
    AWSApi.reset()
    try:
        return dict(getattr(pc, operation)(**arguments))
    except Exception as error:
        code = getattr(error, "code", None)
        if code == _NOT_FOUND:
            raise ClusterNotFoundError(str(_content(error).get("message"))) from error
        if _may_pass_later(error, code):
            raise TransientError(str(_content(error).get("message"))) from error
        content = _content(error)
        if not isinstance(error, ParallelClusterApiException) and "does not exist" in str(
            content.get("message")
        ):
            raise ClusterNotFoundError(str(content["message"])) from error
        raise RefusedError(content) from error


def describe(cluster_name: str) -> ClusterState:
    """Describe a cluster, patiently. Raises ClusterNotFoundError, TransientError, RefusedError."""
    for pause_s in _PAUSES_S:
        try:
            return _describe(cluster_name)
        except TransientError as error:
            print(f"{cluster_name}: asking again in {pause_s} s: {error}")
            time.sleep(pause_s)
    return _describe(cluster_name)


def _describe(cluster_name: str) -> ClusterState:
    answer = _call("describe_cluster", cluster_name=cluster_name)
    return ClusterState(
        status=str(answer["clusterStatus"]),
        tags={tag["key"]: tag["value"] for tag in answer.get("tags") or []},
        failures=tuple(answer.get("failures") or []),
        head_node_instance_id=(answer.get("headNode") or {}).get("instanceId"),
        last_updated=str(answer.get("lastUpdatedTime")),
    )


def failed_events(cluster_name: str) -> list[str]:
    """What failed in the cluster's own stack, first things first; empty when AWS does not say."""
    try:
        answer = _call("get_cluster_stack_events", cluster_name=cluster_name)
    except (ClusterNotFoundError, TransientError, RefusedError) as error:
        print(f"{cluster_name}: no stack events: {error}")
        return []
    failed = [e for e in answer.get("events") or [] if str(e.get("resourceStatus")).endswith("_FAILED")]
    return [f"{e.get('logicalResourceId')}: {e.get('resourceStatusReason')}" for e in reversed(failed)]


def create(cluster_name: str, config: dict[str, Any]) -> None:
    """Validate and start creating; a failed head node is kept until CloudFormation's own Delete."""
    _call(
        "create_cluster", cluster_name=cluster_name, cluster_configuration=config, rollback_on_failure=False
    )


def update(cluster_name: str, config: dict[str, Any]) -> bool:
    """Validate and start updating. Returns False when the cluster already has this config."""
    try:
        _call("update_cluster", cluster_name=cluster_name, cluster_configuration=config)
    except RefusedError as refused:
        if _NO_CHANGES in str(refused.content).lower():
            return False
        raise
    return True


def fleet_status(cluster_name: str) -> str:
    """RUNNING, STOP_REQUESTED, STOPPING, STOPPED, START_REQUESTED, STARTING, PROTECTED or UNKNOWN."""
    return str(_call("describe_compute_fleet", cluster_name=cluster_name)["status"])


def request_fleet(cluster_name: str, status: str) -> None:
    """Ask the head node to stop or start the compute fleet: STOP_REQUESTED or START_REQUESTED."""
    _call("update_compute_fleet", cluster_name=cluster_name, status=status)


def running_compute_nodes(cluster_name: str) -> int:
    """How many compute instances of the cluster run, or are about to."""
    answer = _call("describe_cluster_instances", cluster_name=cluster_name, node_type="ComputeNode")
    states = [str(each.get("state")) for each in answer.get("instances") or []]
    return sum(state in {"pending", "running"} for state in states)


def delete(cluster_name: str) -> None:
    """Start deleting. Raises ClusterNotFoundError when it is gone already."""
    _call("delete_cluster", cluster_name=cluster_name)
