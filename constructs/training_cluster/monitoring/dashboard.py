"""CloudWatch dashboard of a cluster, for when something fails, is slow or is expensive."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from training_cluster.monitoring.graphs import graphs
from training_cluster.monitoring.metrics import (
    ACCELERATOR_METRICS,
    NODE_STATES,
    OWN_NAMESPACE,
    ClusterMetrics,
)

COLUMNS = 24
_GRAPH_HEIGHT, _TEXT_HEIGHT, _ALARMS_HEIGHT = 6, 7, 3

# ParallelCluster's alarms of the head node that ours do not repeat (pcluster/templates/cluster_stack.py).
LIBRARY_ALARMS = ("Cpu", "Mem", "Disk")


class ClusterDashboard(Construct):
    """Dashboard with alarms, head node, nodes, accelerators, Lustre and spend.

    Args:
        accelerator: name of the accelerator, such as NVIDIA H100 80 GB; None for nodes without one.

    Attributes:
        name: name in CloudWatch. It contains the region, since dashboards belong to the whole account;
            ParallelCluster's own is CLUSTER-REGION, and no cluster's name has an underscore.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        metrics: ClusterMetrics,
        alarms: Sequence[cloudwatch.Alarm],
        accelerator: str | None,
        budget_usd: int | None,
    ) -> None:
        super().__init__(scope, id_)
        self.name = f"TrainingCluster_{metrics.cluster_name}_{Aws.REGION}"
        dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=self.name)
        paid = len(metrics.partitions) * len(NODE_STATES) + (len(ACCELERATOR_METRICS) if accelerator else 0)
        text = _guide(metrics, paid_metrics=paid)
        dashboard.add_widgets(cloudwatch.TextWidget(markdown=text, width=COLUMNS, height=_TEXT_HEIGHT))
        dashboard.add_widgets(self._alarm_status(metrics, alarms))
        for row in graphs(metrics, accelerator=accelerator, budget_usd=budget_usd):
            width = COLUMNS // len(row)
            dashboard.add_widgets(*(graph.widget(width=width, height=_GRAPH_HEIGHT) for graph in row))

    def _alarm_status(
        self, metrics: ClusterMetrics, alarms: Sequence[cloudwatch.Alarm]
    ) -> cloudwatch.AlarmStatusWidget:
        """Render the state of our alarms and of ParallelCluster's, which its own stack has."""
        exist = LIBRARY_ALARMS if metrics.published.alarms else ()
        names = [f"{metrics.cluster_name}-HeadNode-{alarm}" for alarm in exist]
        theirs = [
            cloudwatch.Alarm.from_alarm_arn(
                self,
                name,
                Stack.of(self).format_arn(
                    service="cloudwatch",
                    resource="alarm",
                    resource_name=name,
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,
                ),
            )
            for name in names
        ]
        return cloudwatch.AlarmStatusWidget(
            title="Alarms", alarms=[*alarms, *theirs], width=COLUMNS, height=_ALARMS_HEIGHT
        )


def _guide(metrics: ClusterMetrics, *, paid_metrics: int) -> str:
    cluster_name, published = metrics.cluster_name, metrics.published
    library, more = f"{cluster_name}-{Aws.REGION}", ""
    if published.logs:
        more += f"Logs: the log group that starts with `/aws/parallelcluster/{cluster_name}-`; a stream is "
        more += "`HOST.INSTANCE.LOG`.\n"
    if published.dashboards:
        more += "More of the head node, disks and excerpts of logs: ParallelCluster's "
        more += f"[{library}](#dashboards:name={library}).\n"
    rows = "\n".join(f"| {seen} | {look} |" for seen, look in _WHERE_TO_LOOK.items())
    return f"""\
# Cluster {cluster_name}

| what you see | where to look |
|---|---|
{rows}

{more}\
The namespace {OWN_NAMESPACE} has {paid_metrics} metrics, however many nodes run; each is paid by the month.
"""


_WHERE_TO_LOOK = {
    "an alarm is red": "its description: what happened, and what to do",
    "jobs wait, no node comes": "*Nodes that did not start*; then the logs `slurm_resume` and `clustermgtd`",
    "a node starts, and goes again": "its log `cloud-init-output`: the last line of `bootstrap:` says why",
    "training is slow": "accelerators that wait while Lustre is at its limit: the data comes too slowly",
    "nodes are idle for long": "the flag `min_nodes`; and whether clustermgtd, which stops them, is alive",
}
