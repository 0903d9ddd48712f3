"""ParallelCluster's own library, typed: three kinds of error, a dry run that answers, no stale cache."""

from __future__ import annotations

import datetime
import inspect
import os
import tempfile
from dataclasses import replace
from typing import Any

import messages
from answers import (
    LAUNCH_VALIDATORS,
    ClusterNotFoundError,
    ClusterState,
    DryRun,
    RefusedError,
    TransientError,
    code_of,
    passes,
)
from patience import patiently
from request import has_own_tags

# The library logs and caches under HOME; in Lambda only the temporary folder can be written. Its
# CDK v1 prints a banner for every Node newer than its own tests.
_home = os.path.join(tempfile.gettempdir(), "pcluster-home")  # noqa: PTH118
os.makedirs(_home, exist_ok=True)  # noqa: PTH103
os.environ.update(HOME=_home, XDG_CACHE_HOME=_home, JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION="1")

import pcluster.lib as pc  # noqa: E402
import yaml  # noqa: E402
from botocore.exceptions import BotoCoreError  # noqa: E402
from pcluster.api.errors import ParallelClusterApiException, exception_message  # noqa: E402
from pcluster.aws.aws_api import AWSApi  # noqa: E402
from pcluster.aws.common import AWSClientError, Cache  # noqa: E402
from pcluster.constants import PCLUSTER_DYNAMODB_PREFIX  # noqa: E402
from pcluster.models.cluster import Cluster  # noqa: E402
from pcluster.models.compute_fleet_status_manager import (  # noqa: E402
    ComputeFleetStatus,
    JsonComputeFleetStatusManager,
)
from pcluster.validators.s3_validators import UrlValidator  # noqa: E402

_NOT_FOUND, _DRY_RUN_PASSED = 404, 412
_NO_CHANGES = "no changes found"
_MISSING = {"404", "NoSuchBucket", "NoSuchKey", "NoSuchVersion"}
# botocore's words for: no connection, a connection that broke, no answer in time.
_NO_ANSWER = "endpoint URL"
# The library's words where two asked for a fleet at once, and where its table did not answer.
_RETRY = ("please retry", "could not retrieve compute fleet status")
# What became of each URL in the last ten seconds, failures too: a cache apart from the library's others.
_URLS: dict[Any, Any] = inspect.getclosurevars(UrlValidator._validate_async).nonlocals["_cache"]


def _forget() -> None:
    """A warm Lambda must not answer from its last invocation, nor a second try from the first."""
    Cache.clear_all()
    AWSApi.reset()
    _URLS.clear()


def _content(error: BaseException) -> dict[str, Any]:
    content = exception_message(error)
    content = content.to_dict() if hasattr(content, "to_dict") else dict(content)
    if "Unexpected fatal exception" in str(content.get("message")):
        # The library's words for TypeError, OSError and ParameterException: say what it was.
        content["message"] = f"{type(error).__name__}: {error}"
    return content


def _is_unanswered(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, BotoCoreError) or (
            isinstance(cause, AWSClientError) and _NO_ANSWER in str(cause)
        ):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _may_pass_later(error: BaseException) -> bool:
    """Whether it is AWS's trouble, not ours.

    The library answers 500 for almost everything, and a config "is invalid" when a validator's call was
    throttled: what AWS said itself stands in the chain of causes.
    """
    code = code_of(error)
    return passes(code) if code else _is_unanswered(error)


def _is_retried(content: dict[str, Any]) -> bool:
    return any(words in str(content.get("message")).lower() for words in _RETRY)


def _call(operation: str, **arguments: Any) -> dict[str, Any]:
    """Call one operation of the library.

    Raises:
        ClusterNotFoundError, TransientError, RefusedError.
    """
    _forget()
    try:
        return dict(getattr(pc, operation)(**arguments))
    except Exception as error:
        code, content = getattr(error, "code", None), _content(error)
        if code == _DRY_RUN_PASSED:
            return content
        if code == _NOT_FOUND:
            raise ClusterNotFoundError(str(content.get("message"))) from error
        if _may_pass_later(error) or _is_retried(content):
            raise TransientError(str(content.get("message"))) from error
        if not isinstance(error, ParallelClusterApiException) and "does not exist" in str(
            content.get("message")
        ):
            raise ClusterNotFoundError(str(content["message"])) from error
        refused = RefusedError(content)
        if refused.may_pass_later:
            raise TransientError(str(content["configuration_validation_errors"])) from error
        raise refused from error


def _patiently(operation: str, **arguments: Any) -> dict[str, Any]:
    return patiently(operation, lambda: _call(operation, **arguments))


def find(cluster_name: str) -> ClusterState | None:
    """Describe a cluster, patiently; None when there is none. Raises TransientError, RefusedError."""
    try:
        answer = _patiently("describe_cluster", cluster_name=cluster_name)
    except ClusterNotFoundError:
        return None
    return ClusterState(
        status=str(answer["clusterStatus"]),
        tags={tag["key"]: tag["value"] for tag in answer.get("tags") or []},
        failures=tuple(answer.get("failures") or []),
        head_node_instance_id=(answer.get("headNode") or {}).get("instanceId"),
        stack_status=str(answer.get("cloudFormationStackStatus")),
        created=str(answer.get("creationTime")),
        changed=str(answer.get("lastUpdatedTime") or answer.get("creationTime")),
    )


def stack_events(cluster_name: str) -> list[dict[str, Any]]:
    """The events of the cluster's stack, the newest first, 100 at most. Raises as `find` does."""
    return list(_call("get_cluster_stack_events", cluster_name=cluster_name).get("events") or [])


def log_group(cluster_name: str) -> str:
    """Name of the cluster's log group. Raises RefusedError."""
    try:
        return str(Cluster(cluster_name).stack.log_group_name)
    except Exception as error:
        raise RefusedError(_content(error)) from error


def stored_config(cluster_name: str) -> dict[str, Any] | None:
    """The config that a cluster was last given, out of the library's bucket; None when it is not there.

    It is among the files that the cluster's stack is made from, the first to be written and to go.
    Raises TransientError, RefusedError.
    """
    _forget()
    try:
        return dict(yaml.safe_load(Cluster(cluster_name).source_config_text))
    except Exception as error:
        if _may_pass_later(error):
            raise TransientError(str(_content(error).get("message"))) from error
        if code_of(error) in _MISSING:
            return None
        raise RefusedError(_content(error)) from error


def head_node_log_streams(cluster_name: str) -> list[str]:
    """Names of the head node's log streams: `<host>.<instance id>.<log>`."""
    answer = _call(
        "list_cluster_log_streams", cluster_name=cluster_name, filters=["Name=node-type,Values=HeadNode"]
    )
    return [str(stream["logStreamName"]) for stream in answer.get("logStreams") or []]


def log_tail(cluster_name: str, stream: str, *, lines: int) -> str:
    """The end of one log stream."""
    answer = _call("get_cluster_log_events", cluster_name=cluster_name, log_stream_name=stream, limit=lines)
    return "\n".join(f"{e.get('timestamp')} {e.get('message')}" for e in answer.get("events") or [])


def check_create(cluster_name: str, config: dict[str, Any]) -> DryRun:
    """Validate a new cluster; nothing is made. Raises TransientError, RefusedError."""
    return _dry_run("create_cluster", cluster_name=cluster_name, cluster_configuration=config)


def check_update(cluster_name: str, config: dict[str, Any]) -> DryRun | None:
    """Validate an update; None when the cluster has this config. Raises TransientError, RefusedError."""
    try:
        return _dry_run("update_cluster", cluster_name=cluster_name, cluster_configuration=config)
    except RefusedError as refused:
        if _NO_CHANGES in str(refused.content).lower():
            return None
        raise


def _dry_run(operation: str, **asked: Any) -> DryRun:
    try:
        return _would(_patiently(operation, **asked, dryrun=True))
    except RefusedError as refused:
        if not has_own_tags(asked["cluster_configuration"]) or not (denied := refused.denied_volumes):
            raise
    # A policy of the organisation may want these tags on volumes: the launch itself will tell.
    untried = [f"type:{each}" for each in LAUNCH_VALIDATORS]
    would = _would(_patiently(operation, **asked, dryrun=True, suppress_validators=untried))
    return replace(would, validation=(*denied, *would.validation))


def _would(answer: dict[str, Any]) -> DryRun:
    messages = answer.get("validation_messages") or []
    changes = answer.get("change_set") or []
    return DryRun(
        validation=tuple(f"{m['level']} {m['type']}: {m['message']}" for m in messages),
        changes=tuple(f"{c['parameter']}: {c['current_value']} -> {c['requested_value']}" for c in changes),
    )


# check_create and check_update ask the validators; asking again takes a minute and tells nothing new.
_VALIDATED = ["ALL"]


def create(cluster_name: str, config: dict[str, Any]) -> None:
    """Start creating what check_create passed; a failed head node is kept until somebody deletes it."""
    _call(
        "create_cluster",
        cluster_name=cluster_name,
        cluster_configuration=config,
        rollback_on_failure=False,
        suppress_validators=_VALIDATED,
    )


def update(cluster_name: str, config: dict[str, Any]) -> bool:
    """Start updating what check_update passed; False when the cluster has this config."""
    try:
        _call(
            "update_cluster",
            cluster_name=cluster_name,
            cluster_configuration=config,
            suppress_validators=_VALIDATED,
        )
    except RefusedError as refused:
        if _NO_CHANGES in str(refused.content).lower():
            return False
        raise
    return True


def fleet_status(cluster_name: str) -> str:
    """RUNNING, STOP_REQUESTED, STOPPING, STOPPED, START_REQUESTED, STARTING or PROTECTED.

    Raises:
        TransientError: its table did not answer.
        RefusedError: the table has no status.
    """
    status = str(_call("describe_compute_fleet", cluster_name=cluster_name)["status"])
    # The library's word for a table that did not answer, and for one that has no status.
    return status if status != "UNKNOWN" else _stored_fleet_status(cluster_name)


def _stored_fleet_status(cluster_name: str) -> str:
    table, key = f"{PCLUSTER_DYNAMODB_PREFIX}{cluster_name}", JsonComputeFleetStatusManager.DB_KEY
    try:
        stored = AWSApi.instance().ddb_resource.get_item(table, {"Id": key})
    except Exception as error:
        if code_of(error) != "ResourceNotFoundException":
            raise TransientError(f"{table} did not say what the compute fleet does: {error}") from error
        stored = {}
    try:
        return str(ComputeFleetStatus(stored["Item"]["Data"]["status"]))
    except (KeyError, TypeError, ValueError):
        at = datetime.datetime.now(datetime.UTC).isoformat(" ")
        message = messages.no_fleet_status(
            cluster_name, region=os.environ["AWS_REGION"], table=table, at=at, has_item="Item" in stored
        )
        raise RefusedError({"message": message}) from None


def request_fleet(cluster_name: str, status: str) -> None:
    """Ask the head node to stop or start the compute fleet: STOP_REQUESTED or START_REQUESTED."""
    _call("update_compute_fleet", cluster_name=cluster_name, status=status)


def running_compute_nodes(cluster_name: str) -> int:
    """How many compute instances of the cluster run, or are about to."""
    answer = _call("describe_cluster_instances", cluster_name=cluster_name, node_type="ComputeNode")
    return sum(each.get("state") in {"pending", "running"} for each in answer.get("instances") or [])


def delete(cluster_name: str) -> None:
    """Start deleting. Raises ClusterNotFoundError when it is gone already."""
    _call("delete_cluster", cluster_name=cluster_name)
