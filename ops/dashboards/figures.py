"""Figures of `trainctl top`: nodes, jobs, users and alerts, by a few queries."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ops.dashboards.prometheus import Value

Ask = Callable[[str], list[Value]]
_OF_JOBS = {
    "nodes": "slurm_job_nodes",
    "seconds": "time() - slurm_job_start_seconds",
    "gpu_use": "avg by (job) (slurm_node_job_info * on (node) group_left () "
    "avg by (node) (gpu_utilization_ratio))",
    "step": "training_step",
    "loss": "training_loss",
    "tokens_per_s": "training_tokens_per_second",
    "mfu": "training_mfu_ratio",
    "step_s": "training_step_seconds",
    "data_wait": "training_data_wait_seconds / training_step_seconds",
    "silence_s": "time() - training_row_seconds",
}
"""Queries of JobFigures by the name of the figure."""
_OF_NODES = {
    "gpu_use": "avg by (node) (gpu_utilization_ratio)",
    "hottest_c": "max by (node) (gpu_temperature_celsius)",
    "cpu_use": 'sum by (node) (rate(host_cpu_seconds_total{mode!~"idle|iowait"}[2m])) '
    "/ max by (node) (host_cpus)",
}
"""Queries of NodeFigures by the name of the figure."""


@dataclass(frozen=True, kw_only=True)
class JobFigures:
    """A running job. Figures are None where it publishes none."""

    job: str
    user: str
    name: str
    partition: str
    nodes: int
    seconds: float
    """Since its start."""
    gpu_use: float | None
    """Mean of its nodes' GPUs, 0 to 1."""
    workload: str | None
    step: int | None
    loss: float | None
    tokens_per_s: float | None
    mfu: float | None
    step_s: float | None
    data_wait: float | None
    """Part of a step that waits for data, 0 to 1."""
    silence_s: float | None
    """Since its newest step."""


@dataclass(frozen=True, kw_only=True)
class NodeFigures:
    """A node that is not powered down."""

    node: str
    partition: str
    state: str
    reason: str | None
    jobs: tuple[str, ...]
    gpu_use: float | None
    hottest_c: float | None
    cpu_use: float | None
    """Share of all processors, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """All figures of one moment."""

    jobs: tuple[JobFigures, ...]
    nodes: tuple[NodeFigures, ...]
    pending: int
    longest_wait_s: float
    tokens_per_s: float
    usd_per_hour: float
    spend_usd: float
    alerts: tuple[dict[str, str], ...] = field(default=())


def read_figures(ask: Ask) -> Figures:
    """Ask for everything. Raises OpsError if Prometheus does not answer."""
    of_jobs = _read("job", _OF_JOBS, ask)
    alerts = ask('ALERTS{alertstate="firing"}')
    return Figures(
        jobs=tuple(sorted(_jobs(ask, of_jobs), key=lambda each: int(each.job))),
        nodes=tuple(sorted(_nodes(ask), key=lambda each: each.node)),
        pending=int(sum(each.value for each in ask('slurm_jobs{state="pending"}'))),
        longest_wait_s=max((each.value for each in ask("slurm_queue_wait_seconds")), default=0.0),
        tokens_per_s=sum(of_jobs["tokens_per_s"].values()),
        usd_per_hour=sum(each.value for each in ask("cluster_usd_per_hour")),
        spend_usd=max((each.value for each in ask("cluster_spend_usd")), default=0.0),
        alerts=tuple(
            {name: text for name, text in each.labels.items() if not name.startswith(("__", "alertstate"))}
            for each in alerts
        ),
    )


def _jobs(ask: Ask, figures: dict[str, dict[str, float]]) -> Iterator[JobFigures]:
    workload = {each.labels["job"]: each.labels.get("workload") for each in ask("training_step")}
    for each in ask("slurm_job_info"):
        job = each.labels["job"]
        found: dict[str, Any] = {name: values.get(job) for name, values in figures.items()}
        yield JobFigures(
            job=job,
            user=each.labels.get("user", ""),
            name=each.labels.get("name", ""),
            partition=each.labels.get("partition", ""),
            workload=workload.get(job),
            nodes=int(found.pop("nodes") or 0),
            seconds=found.pop("seconds") or 0.0,
            step=None if (step := found.pop("step")) is None else int(step),
            **found,
        )


def _nodes(ask: Ask) -> Iterator[NodeFigures]:
    jobs: dict[str, list[str]] = {}
    for each in ask("slurm_node_job_info"):
        jobs.setdefault(each.labels["node"], []).append(each.labels["job"])
    reasons = {each.labels["node"]: each.labels["reason"] for each in ask("slurm_node_out_since_seconds")}
    figures = _read("node", _OF_NODES, ask)
    for each in ask("slurm_node_state"):
        node = each.labels["node"]
        yield NodeFigures(
            node=node,
            partition=each.labels.get("partition", ""),
            state=each.labels.get("state", ""),
            reason=reasons.get(node),
            jobs=tuple(sorted(jobs.get(node, []))),
            **{name: values.get(node) for name, values in figures.items()},
        )


def _read(label: str, queries: Mapping[str, str], ask: Ask) -> dict[str, dict[str, float]]:
    """Return the values of each query by a label."""
    return {
        name: {each.labels[label]: each.value for each in ask(query) if label in each.labels}
        for name, query in queries.items()
    }
