"""Figures of `trainctl top`: nodes, jobs, users and alerts, by a few queries."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ops.dashboards.prometheus import Value

Ask = Callable[[str], list[Value]]


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
    tokens = _by("job", ask("training_tokens_per_second"))
    alerts = ask('ALERTS{alertstate="firing"}')
    return Figures(
        jobs=_jobs(ask, tokens),
        nodes=_nodes(ask),
        pending=int(sum(each.value for each in ask('slurm_jobs{state="pending"}'))),
        longest_wait_s=max((each.value for each in ask("slurm_queue_wait_seconds")), default=0.0),
        tokens_per_s=sum(tokens.values()),
        usd_per_hour=sum(each.value for each in ask("cluster_usd_per_hour")),
        spend_usd=max((each.value for each in ask("cluster_spend_usd")), default=0.0),
        alerts=tuple(
            {name: text for name, text in each.labels.items() if not name.startswith(("__", "alertstate"))}
            for each in alerts
        ),
    )


def _jobs(ask: Ask, tokens: dict[str, float]) -> tuple[JobFigures, ...]:
    nodes = _by("job", ask("slurm_job_nodes"))
    seconds = _by("job", ask("time() - slurm_job_start_seconds"))
    use = _by(
        "job",
        ask(
            "avg by (job) (slurm_node_job_info * on (node) group_left () "
            "avg by (node) (gpu_utilization_ratio))"
        ),
    )
    names = ("training_step", "training_loss", "training_mfu_ratio", "training_step_seconds")
    step, loss, mfu, step_s = (_by("job", ask(name)) for name in names)
    wait = _by("job", ask("training_data_wait_seconds / training_step_seconds"))
    silence = _by("job", ask("time() - training_row_seconds"))
    workload = {each.labels["job"]: each.labels.get("workload") for each in ask("training_step")}
    found = [
        JobFigures(
            job=(job := each.labels["job"]),
            user=each.labels.get("user", ""),
            name=each.labels.get("name", ""),
            partition=each.labels.get("partition", ""),
            nodes=int(nodes.get(job, 0)),
            seconds=seconds.get(job, 0.0),
            gpu_use=use.get(job),
            workload=workload.get(job),
            step=int(step[job]) if job in step else None,
            loss=loss.get(job),
            tokens_per_s=tokens.get(job),
            mfu=mfu.get(job),
            step_s=step_s.get(job),
            data_wait=wait.get(job),
            silence_s=silence.get(job),
        )
        for each in ask("slurm_job_info")
    ]
    return tuple(sorted(found, key=lambda each: int(each.job)))


def _nodes(ask: Ask) -> tuple[NodeFigures, ...]:
    jobs: dict[str, list[str]] = {}
    for each in ask("slurm_node_job_info"):
        jobs.setdefault(each.labels["node"], []).append(each.labels["job"])
    reasons = {each.labels["node"]: each.labels["reason"] for each in ask("slurm_node_out_since_seconds")}
    use = _by("node", ask("avg by (node) (gpu_utilization_ratio)"))
    hottest = _by("node", ask("max by (node) (gpu_temperature_celsius)"))
    busy = _by(
        "node",
        ask(
            'sum by (node) (rate(host_cpu_seconds_total{mode!~"idle|iowait"}[2m])) '
            "/ max by (node) (host_cpus)"
        ),
    )
    found = [
        NodeFigures(
            node=(node := each.labels["node"]),
            partition=each.labels.get("partition", ""),
            state=each.labels.get("state", ""),
            reason=reasons.get(node),
            jobs=tuple(sorted(jobs.get(node, []))),
            gpu_use=use.get(node),
            hottest_c=hottest.get(node),
            cpu_use=busy.get(node),
        )
        for each in ask("slurm_node_state")
    ]
    return tuple(sorted(found, key=lambda each: each.node))


def _by(label: str, values: list[Value]) -> dict[str, float]:
    return {each.labels[label]: each.value for each in values if label in each.labels}
