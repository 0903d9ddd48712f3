"""Pure: the library's answers as text that a person can act on, within CloudFormation's 4 KB."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

# A custom resource's answer is JSON of 4096 bytes at most; ids, attributes and what the framework
# adds to a reason take the rest.
MAX_REASON_BYTES = 2500
_LEVELS = {"ERROR": 0, "WARNING": 1, "INFO": 2}


def fit(text: str, limit: int = MAX_REASON_BYTES) -> str:
    """Cut text to `limit` bytes as JSON, saying so; the beginning holds what matters most."""
    if len(json.dumps(text)) <= limit:
        return text
    mark = " ... (cut; the function's log has all of it)"
    kept = text[:limit]
    while len(json.dumps(kept + mark)) > limit:
        kept = kept[: -max(1, len(kept) // 50)]
    return kept + mark


def refusal(content: dict[str, Any]) -> str:
    """Explain a refused create or update: validation errors first, then refused changes."""
    lines = [str(content.get("message", "The ParallelCluster library refused the request"))]
    validations = content.get("configuration_validation_errors") or []
    for problem in sorted(validations, key=lambda p: _LEVELS.get(str(p.get("level")), 9)):
        lines.append(f"{problem.get('level')} {problem.get('type')}: {problem.get('message')}")
    for problem in content.get("update_validation_errors") or []:
        change = f"{problem.get('current_value')} -> {problem.get('requested_value')}"
        lines.append(f"{problem.get('parameter')}: {change}: {problem.get('message')}")
    return fit(" | ".join(lines))


def failure(cluster_name: str, status: str, failures: Iterable[dict[str, Any]], events: Iterable[str]) -> str:
    """Explain a cluster that ended in a failed state: the library's reasons, its stack's, where more is."""
    reasons = [f"{f.get('failureCode')}: {f.get('failureReason')}" for f in failures]
    more = f"More: pcluster get-cluster-stack-events --cluster-name {cluster_name}"
    return fit(" | ".join([f"Cluster {cluster_name} is {status}", *reasons, more, *events]))


def _refused_changes(content: dict[str, Any]) -> str:
    changes = content.get("update_validation_errors") or []
    return ", ".join(
        f"{each.get('parameter')}: {each.get('current_value')} -> {each.get('requested_value')}"
        for each in changes
    )


def busy(cluster_name: str, running: int, content: dict[str, Any]) -> str:
    """Refuse to stop nodes that run."""
    return fit(
        f"{running} compute nodes of {cluster_name} run, and this update wants them stopped. Nothing was "
        "changed. Wait until they are idle and gone (squeue, sinfo), or type: -c on_busy=stop, which ends "
        f"their jobs. What wants it: {_refused_changes(content)}"
    )


def cannot_drain(cluster_name: str, content: dict[str, Any]) -> str:
    """Refuse a change that draining does not make possible."""
    return fit(
        f"{cluster_name}: draining nodes is not enough for this update; the whole fleet has to stop. Nothing "
        f"was changed. Type: -c on_busy=stop. What wants it: {_refused_changes(content)}"
    )


def not_ours(cluster_name: str) -> str:
    """Refuse to touch a cluster that this stack did not make."""
    return (
        f"A cluster named {cluster_name} exists already and was not made by this stack. It was not touched. "
        f"Give yours another name: cdk deploy TrainingClusterStack -c cluster_name={cluster_name[:38]}-2"
    )
