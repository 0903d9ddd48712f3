"""The dashboard's graphs, row by row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch

from training_cluster.monitoring.metrics import (
    ACCELERATOR_MEMORY,
    ACCELERATOR_USE,
    NODE_STATES,
    ClusterMetrics,
    account_charges,
)

BILLING_REGION = "us-east-1"
"""Only region in which AWS publishes charges."""

_COUNT = cloudwatch.YAxisProps(min=0, show_units=False)
_PERCENT = cloudwatch.YAxisProps(min=0, max=100, label="percent", show_units=False)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One graph, without its position on the dashboard."""

    title: str
    left: Sequence[cloudwatch.IMetric]
    right: Sequence[cloudwatch.IMetric] = ()
    axis: cloudwatch.YAxisProps | None = None
    """Left axis; None for one that begins at 0."""
    stacked: bool = False
    line: cloudwatch.HorizontalAnnotation | None = None
    region: str | None = None
    """Region of its metrics; None for the stack's region."""

    def widget(self, *, width: int, height: int) -> cloudwatch.GraphWidget:
        """Build the graph's widget; width and height are in columns and rows of the dashboard."""
        return cloudwatch.GraphWidget(
            title=self.title,
            left=list(self.left),
            right=list(self.right),
            left_y_axis=self.axis or _COUNT,
            right_y_axis=_COUNT,
            left_annotations=[self.line] if self.line else None,
            stacked=self.stacked,
            region=self.region,
            width=width,
            height=height,
        )


def graphs(metrics: ClusterMetrics, *, accelerator: str | None, budget_usd: int | None) -> list[list[Graph]]:
    """Return the graphs in rows, the most urgent row first."""
    nodes = [_nodes(metrics, partition) for partition in metrics.partitions]
    return [
        [_head_node_use(metrics), _head_node_alive(metrics), *_failures(metrics)],
        [*nodes, *(_accelerators(metrics, accelerator) if accelerator else ())],
        [_lustre_throughput(metrics), _lustre_free(metrics), _spend(budget_usd)],
    ]


def _head_node_use(metrics: ClusterMetrics) -> Graph:
    of_agent = [
        metrics.head_node_memory().with_(label="memory"),
        metrics.head_node_disk().with_(label="root volume"),
    ]
    return Graph(
        title="Head node: CPU" + (", memory, root volume" if metrics.published.logs else ""),
        left=[metrics.head_node_cpu().with_(label="CPU"), *(of_agent if metrics.published.logs else [])],
        axis=_PERCENT,
    )


def _head_node_alive(metrics: ClusterMetrics) -> Graph:
    has_beat = metrics.published.heartbeat
    beat = metrics.heartbeat().with_(label="clustermgtd alive")
    return Graph(
        title="Head node: EC2's checks failed (0 is well)"
        + (", clustermgtd alive (1 is well)" if has_beat else ""),
        left=[metrics.head_node_checks().with_(label="checks failed"), *([beat] if has_beat else [])],
    )


def _failures(metrics: ClusterMetrics) -> Iterator[Graph]:
    if metrics.published.launch_failures:
        yield Graph(
            title="Nodes that did not start, by cause",
            left=list(metrics.launch_failures().values()),
            stacked=True,
        )


def _nodes(metrics: ClusterMetrics, partition: str) -> Graph:
    return Graph(
        title=f"Nodes of partition {partition}, by Slurm state",
        left=[metrics.nodes(partition, state) for state in NODE_STATES],
        stacked=True,
    )


def _accelerators(metrics: ClusterMetrics, name: str) -> list[Graph]:
    titles = {ACCELERATOR_USE: "utilisation", ACCELERATOR_MEMORY: "memory in use"}
    return [
        Graph(
            title=f"{name}: {title}, all of all nodes",
            left=[metrics.accelerators(metric, s) for s in ("Average", "Minimum", "Maximum")],
            axis=_PERCENT,
        )
        for metric, title in titles.items()
    ]


def _lustre_throughput(metrics: ClusterMetrics) -> Graph:
    return Graph(
        title="Lustre throughput, MB/s",
        left=[
            cloudwatch.MathExpression(
                expression=f"{word} / PERIOD({word}) / 1000000",
                using_metrics={word: metrics.lustre(name)},
                label=word,
            )
            for word, name in {"read": "DataReadBytes", "written": "DataWriteBytes"}.items()
        ],
    )


def _lustre_free(metrics: ClusterMetrics) -> Graph:
    fullest = metrics.lustre("FreeDataStorageCapacity", "Minimum")
    return Graph(
        title="Lustre: free space; on the right, bytes free on the fullest of its disks",
        left=[metrics.lustre_free_percent()],
        right=[fullest.with_(label="free on the fullest disk")],
        axis=_PERCENT,
    )


def _spend(budget_usd: int | None) -> Graph:
    budget = f"line: this cluster's budget, {budget_usd} USD" if budget_usd else "no budget_usd"
    return Graph(
        title=f"Spent since the 1st, USD: the whole account, all regions (from {BILLING_REGION}); {budget}",
        left=[account_charges()],
        line=cloudwatch.HorizontalAnnotation(value=budget_usd, label="budget_usd") if budget_usd else None,
        region=BILLING_REGION,
    )
