"""Pure: the library's answers as text that a person can act on, within CloudFormation's 4 KB."""

from __future__ import annotations

import json
from collections.abc import Iterable

from answers import ClusterState, RefusedError
from kept import Change

# A custom resource's answer is JSON of 4096 bytes at most; ids, attributes and what the framework
# adds to a reason take the rest.
MAX_REASON_BYTES = 2500
_LEVELS = {"ERROR": 0, "WARNING": 1, "INFO": 2}
_JOBS_SHOWN = 10
# Of each of the library's reasons, so that where more is always fits behind them.
_MAX_FAILURE_BYTES = 1000


def fit(text: str, limit: int = MAX_REASON_BYTES) -> str:
    """Cut text to `limit` bytes as JSON, saying so; the beginning holds what matters most."""
    if len(json.dumps(text)) <= limit:
        return text
    mark = " ... (cut; the function's log has all of it)"
    kept = text[:limit]
    while len(json.dumps(kept + mark)) > limit:
        kept = kept[: -max(1, len(kept) // 50)]
    return kept + mark


def refusal(cluster_name: str, refused: RefusedError) -> str:
    """Explain a refused create or update: validation errors first, then refused changes."""
    content = refused.content
    lines = [str(content.get("message", "The ParallelCluster library refused the request"))]
    validations = content.get("configuration_validation_errors") or []
    for problem in sorted(validations, key=lambda p: _LEVELS.get(str(p.get("level")), 9)):
        lines.append(f"{problem.get('level')} {problem.get('type')}: {problem.get('message')}")
    if refused.is_impossible:
        lines = [
            f"{cluster_name} cannot take this change; nothing was changed. Restore the former flags, or make "
            f"a second cluster on the same network and storage: {_second_cluster(cluster_name)}"
        ]
    for problem in content.get("update_validation_errors") or []:
        change = f"{problem.get('current_value')} -> {problem.get('requested_value')}"
        lines.append(f"{problem.get('parameter')}: {change}: {problem.get('message')}")
    return fit(" | ".join(lines))


def failure(
    cluster_name: str,
    state: ClusterState,
    *,
    events: Iterable[str],
    log_group: str | None,
    saved_to: str | None,
) -> str:
    """Explain a cluster that ended in a failed state: what failed, where more is, all failed events."""
    lines = [f"Cluster {cluster_name} is {state.status}"]
    reasons = " | ".join(f"{f.get('failureCode')}: {f.get('failureReason')}" for f in state.failures)
    lines += [fit(reasons, _MAX_FAILURE_BYTES)] if reasons else []
    if state.stack_status == "UPDATE_ROLLBACK_FAILED":
        lines.append(f"Type: aws cloudformation continue-update-rollback --stack-name {cluster_name}")
    if saved_to:
        lines.append(f"Saved: {saved_to}")
    if log_group:
        lines.append(f"Log group: {log_group}")
    lines.append(f"More: pcluster get-cluster-stack-events --cluster-name {cluster_name}")
    return fit(" | ".join([*lines, *events]))


def kept(cluster_name: str, changes: list[Change]) -> str:
    """Refuse to change what a cluster keeps for its life."""
    named = "; ".join(str(each) for each in changes)
    flags = list(dict.fromkeys(flag for each in changes for flag in each.flags))
    return fit(
        f"{cluster_name} keeps its mounts and its permissions boundary for its life; nothing was changed "
        f"({named}). Restore the former flag{'s' if len(flags) > 1 else ''} ({', '.join(flags)}), or "
        f"create a second cluster with the new values, giving the same flags: {_second_cluster(cluster_name)}"
    )


def _refused_changes(refused: RefusedError) -> str:
    changes = refused.content.get("update_validation_errors") or []
    return ", ".join(
        f"{each.get('parameter')}: {each.get('current_value')} -> {each.get('requested_value')}"
        for each in changes
    )


def busy(cluster_name: str, running: int, jobs: list[str] | None, refused: RefusedError) -> str:
    """Refuse to stop nodes that run.

    Args:
        jobs: that run on them; None when they could not be asked.
    """
    drain = ", or -c on_busy=drain, which lets them end first" if refused.may_drain else ""
    named = "The jobs could not be asked for (squeue on the head node tells)."
    if jobs is not None:
        shown = "; ".join(jobs[:_JOBS_SHOWN]) + (" ..." if len(jobs) > _JOBS_SHOWN else "")
        named = f"Jobs: {shown}." if jobs else "No job runs on them."
    return fit(
        f"{running} compute nodes of {cluster_name} run, and this update wants them stopped. Nothing was "
        f"changed. {named} Idle nodes above min_nodes end by themselves after some minutes; or type: "
        f"-c on_busy=stop, which ends them and their jobs{drain}. "
        f"What wants it: {_refused_changes(refused)}"
    )


def cannot_drain(cluster_name: str, jobs: list[str] | None, refused: RefusedError) -> str:
    """Refuse a change that draining does not make possible."""
    named = f" Jobs: {'; '.join(jobs[:_JOBS_SHOWN])}." if jobs else ""
    return fit(
        f"{cluster_name}: draining nodes is not enough for this update; the whole fleet has to stop. Nothing "
        f"was changed.{named} Wait until the nodes are gone, or type: -c on_busy=stop, which ends their "
        "jobs. "
        f"What wants it: {_refused_changes(refused)}"
    )


def not_ours(cluster_name: str) -> str:
    """Refuse to touch a cluster that this stack did not make."""
    return (
        f"A cluster named {cluster_name} exists already and was not made by this stack. It was not touched. "
        f"Give yours another name: {_second_cluster(cluster_name)}; or, if that one is yours and abandoned: "
        f"pcluster delete-cluster --cluster-name {cluster_name}"
    )


def renamed(cluster_name: str, new_name: str) -> str:
    """Refuse another name for the cluster of a stack."""
    return f"A stack's cluster cannot be renamed ({cluster_name} to {new_name}). Nothing was changed. " + (
        f"Another cluster_name is another stack: {_deploy(new_name)}"
    )


def too_late(cluster_name: str, kind: str, status: str) -> str:
    """Give up before CloudFormation does, which would give no reason."""
    return (
        f"{kind} of {cluster_name} did not end within the hour that CloudFormation gives it; the cluster is "
        f"{status}. What it was at last: make status."
    )


def superseded(cluster_name: str) -> str:
    """End the polls of a request that another one has overtaken."""
    return f"{cluster_name}: another request came after this one; nothing was changed by this one any more."


def no_head_node(cluster_name: str) -> str:
    """Say that the head node was terminated, and how to go on."""
    return (
        f"The head node of {cluster_name} was terminated, and no update can bring it back. Nothing was "
        f"changed. /fsx and EFS stay; what was on its own disk is gone. To go on, {_make_anew(cluster_name)}"
    )


def no_stored_config(cluster_name: str) -> str:
    """Say that the library's bucket lost what an update is compared with, and how to go on."""
    return (
        f"The config that {cluster_name} was made from is no longer in ParallelCluster's bucket "
        "(parallelcluster-...-do-not-delete), and without it no update is possible. Nothing was changed; the "
        "cluster goes on as it is. A new one keeps /fsx and EFS, and loses what is on the head node's own "
        f"disk. When its jobs have ended, {_make_anew(cluster_name)}"
    )


def no_fleet_status(cluster_name: str, *, region: str, table: str, at: str, has_item: bool) -> str:
    """Say that the cluster's table has no status of the compute fleet, and how to write it.

    Args:
        at: UTC time (ISO 8601), which ParallelCluster keeps beside the status.
        has_item: the item exists, but its status is none that ParallelCluster knows.
    """
    # The AWS CLI's shorthand, since the double quotes of JSON have backslashes in logs that are JSON.
    command = (
        f"aws dynamodb put-item --region {region} --table-name {table} --item 'Id={{S=COMPUTE_FLEET}},"
        f"Data={{M={{status={{S=START_REQUESTED}},lastStatusUpdatedTime={{S={at}}}}}}}'"
    )
    gone = f"The DynamoDB table {table} has no item COMPUTE_FLEET"
    advice = (
        "Put the item back, which starts the fleet, then type the deploy again, also where "
        "ConditionalCheckFailedException says that the item has come back"
    )
    if has_item:
        gone = f"Item COMPUTE_FLEET of the DynamoDB table {table} has no status that ParallelCluster knows"
        advice = "Write the item anew, which starts the fleet, then type the deploy again"
    else:
        command += " --condition-expression 'attribute_not_exists(Id)'"
    return (
        f"{gone}, so that the compute fleet of {cluster_name} can be neither stopped nor started. {advice}: "
        f"{command} | Where the table itself is gone, {_make_anew(cluster_name)}"
    )


def disappeared(cluster_name: str) -> str:
    """Say that somebody else deleted the cluster."""
    return f"Cluster {cluster_name} disappeared while it was being made. Type the same deploy again."


def no_answer(cluster_name: str, error: Exception) -> str:
    """Say that AWS did not answer, and that nothing happened."""
    return fit(f"{cluster_name}: AWS gave no answer; nothing was changed. Type the deploy again. {error}")


def _make_anew(cluster_name: str) -> str:
    destroy = f"npx cdk destroy TrainingClusterStack -c cluster_name={cluster_name}"
    return f"type: {destroy} and then the deploy again."


def _second_cluster(cluster_name: str) -> str:
    return _deploy(f"{cluster_name[:38]}-2")


def _deploy(cluster_name: str) -> str:
    return f"npx cdk deploy TrainingClusterStack -c cluster_name={cluster_name}"
