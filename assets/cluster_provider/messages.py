"""Messages for people from the library's answers, within CloudFormation's limit of 4 KB."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from cluster_state import ClusterState
from errors import RefusedError
from immutable import Change

# A custom resource's answer is JSON of 4096 bytes at most; ids, attributes and the framework's additions to
# a reason take the rest.
MAX_REASON_BYTES = 2500
_LEVELS = {"ERROR": 0, "WARNING": 1, "INFO": 2}
_JOBS_SHOWN = 10
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Limit of the library's reasons, which leaves room for the names of the logs behind them.
_MAX_FAILURE_BYTES = 1000


def fit(text: str, limit: int = MAX_REASON_BYTES) -> str:
    """Cut text to `limit` bytes as JSON and mark the cut; the beginning matters most.

    Control characters become a ?: names of jobs may have them, and CloudFormation's XML has none.
    """
    text = _CONTROL.sub("?", text)
    if len(json.dumps(text)) <= limit:
        return text
    mark = " ... (cut; the function's log has all of it)"
    start = text[:limit]
    while len(json.dumps(start + mark)) > limit:
        start = start[: -max(1, len(start) // 50)]
    return start + mark


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
            f"a second cluster on the same network and storage: {second_cluster_command(cluster_name)}"
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
    """Explain a cluster in a failed state: the failures, the places of its logs, all failed events."""
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


def immutable(cluster_name: str, changes: list[Change]) -> str:
    """Refuse a change of settings that are immutable for a cluster's life."""
    listed = "; ".join(str(each) for each in changes)
    flags = list(dict.fromkeys(flag for each in changes for flag in each.flags))
    return fit(
        f"{cluster_name} keeps its mounts and its permissions boundary for its life; nothing was changed "
        f"({listed}). Restore the former flag{'s' if len(flags) > 1 else ''} ({', '.join(flags)}), or "
        "create a second cluster with the new values: "
        f"{second_cluster_command(cluster_name)}{''.join(f' -c {flag}=NEW' for flag in flags)}"
    )


def _refused_changes(refused: RefusedError) -> str:
    changes = refused.content.get("update_validation_errors") or []
    return ", ".join(
        f"{each.get('parameter')}: {each.get('current_value')} -> {each.get('requested_value')}"
        for each in changes
    )


def busy(cluster_name: str, running: int, jobs: list[str] | None, refused: RefusedError) -> str:
    """Refuse to stop running nodes.

    Args:
        jobs: running on the nodes; None if the head node could not list them.
    """
    drain = ", or -c on_busy=drain, which lets them end first" if refused.may_drain else ""
    named = "The jobs could not be listed; type squeue on the head node."
    if jobs is not None:
        shown = "; ".join(jobs[:_JOBS_SHOWN]) + (" ..." if len(jobs) > _JOBS_SHOWN else "")
        named = f"Jobs: {shown}." if jobs else "No job runs on them."
    return fit(
        f"{running} compute nodes of {cluster_name} run, and this update requires them to be stopped. "
        f"Nothing was changed. {named} Idle nodes above min_nodes end by themselves after some minutes; or "
        f"type: -c on_busy=stop, which ends them and their jobs{drain}. "
        f"Required by: {_refused_changes(refused)}"
    )


def cannot_drain(cluster_name: str, jobs: list[str] | None, refused: RefusedError) -> str:
    """Refuse a change that requires a stop of the whole fleet, not only drained nodes."""
    named = f" Jobs: {'; '.join(jobs[:_JOBS_SHOWN])}." if jobs else ""
    return fit(
        f"{cluster_name}: draining nodes is not enough for this update; the whole fleet has to stop. Nothing "
        f"was changed.{named} Wait until the nodes are gone, or type: -c on_busy=stop, which ends their "
        "jobs. "
        f"Required by: {_refused_changes(refused)}"
    )


def not_ours(cluster_name: str) -> str:
    """Refuse to change a cluster, or another stack of its name, that this stack did not create."""
    return (
        f"A stack or cluster named {cluster_name} exists already and was not made by this stack. It was not "
        f"touched. Use another name: {second_cluster_command(cluster_name)}; or, if it is your own "
        f"abandoned cluster: pcluster delete-cluster --cluster-name {cluster_name}"
    )


def renamed(cluster_name: str, new_name: str) -> str:
    """Refuse another name for a stack's cluster."""
    return (
        f"A stack's cluster cannot be renamed ({cluster_name} to {new_name}). Nothing was changed. Type: "
        f"-c cluster_name={cluster_name}, or, for a second cluster, {second_cluster_command(cluster_name)}"
    )


def too_late(cluster_name: str, kind: str, status: str) -> str:
    """Report the end of the time limit, before CloudFormation ends it without a reason."""
    return (
        f"{kind} of {cluster_name} did not end within the hour that CloudFormation gives it; the cluster is "
        f"{status}. Its last stage: trainctl status --cluster {cluster_name}"
    )


def superseded(cluster_name: str) -> str:
    """Report that a later request has superseded this one."""
    return f"{cluster_name}: a later request superseded this one, which makes no further change."


def no_head_node(cluster_name: str) -> str:
    """Report that the head node was terminated, with the commands that replace the cluster."""
    return (
        f"The head node of {cluster_name} was terminated, and no update can bring it back. Nothing was "
        "changed. /fsx and EFS remain; the data on its own disk is lost. To continue, "
        f"{_replace_command(cluster_name)}"
    )


def no_stored_config(cluster_name: str) -> str:
    """Report that the library's bucket lost the former config, with the commands that replace the cluster."""
    return (
        f"The config from which {cluster_name} was created is no longer in ParallelCluster's bucket "
        "(parallelcluster-...-do-not-delete), and without it no update is possible. Nothing was changed, and "
        "the cluster continues to run. A new cluster keeps /fsx and EFS, but loses the data on the head "
        f"node's own disk. When the jobs have ended, {_replace_command(cluster_name)}"
    )


def no_fleet_status(cluster_name: str, *, region: str, table: str, at: str, has_item: bool) -> str:
    """Report that the cluster's table has no status of the compute fleet, with the command that writes it.

    Args:
        at: UTC time (ISO 8601), which ParallelCluster stores with the status.
        has_item: the item exists, but ParallelCluster does not know its status.
    """
    # The AWS CLI's shorthand syntax: logs in JSON would escape the double quotes of a JSON item.
    command = (
        f"aws dynamodb put-item --region {region} --table-name {table} --item 'Id={{S=COMPUTE_FLEET}},"
        f"Data={{M={{status={{S=START_REQUESTED}},lastStatusUpdatedTime={{S={at}}}}}}}'"
    )
    gone = f"The DynamoDB table {table} has no item COMPUTE_FLEET"
    advice = (
        "Write the item again, which starts the fleet, then repeat the deploy. Also repeat it if the command "
        "fails with ConditionalCheckFailedException: the item exists again"
    )
    if has_item:
        gone = f"Item COMPUTE_FLEET of the DynamoDB table {table} has no status that ParallelCluster knows"
        advice = "Write the item again, which starts the fleet, then repeat the deploy"
    else:
        command += " --condition-expression 'attribute_not_exists(Id)'"
    return (
        f"{gone}, so that the compute fleet of {cluster_name} can be neither stopped nor started. {advice}: "
        f"{command} | If the table itself no longer exists, {_replace_command(cluster_name)}"
    )


def disappeared(cluster_name: str) -> str:
    """Report that the cluster was deleted by someone else."""
    return f"Cluster {cluster_name} disappeared while it was being created. Type the same deploy again."


def no_answer(cluster_name: str, error: Exception) -> str:
    """Report that AWS did not answer, and that nothing was changed."""
    return fit(f"{cluster_name}: AWS gave no answer; nothing was changed. Type the deploy again. {error}")


def _replace_command(cluster_name: str) -> str:
    destroy = f"npx cdk destroy TrainingClusterStack -c cluster_name={cluster_name}"
    return f"type: {destroy} and then the deploy again."


def second_cluster_command(cluster_name: str) -> str:
    """Return the command that deploys another cluster with this one's flags, for trainctl, too."""
    return f"trainctl deploy --cluster {cluster_name} -c cluster_name={cluster_name[:38]}-2"
