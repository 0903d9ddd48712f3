"""CloudWatch metrics of a cluster: names, dimensions, statistics. Alarms and the dashboard share them."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from training_cluster.monitoring.published import LAUNCH_FAILURES, Published

MINUTE, FIVE_MINUTES = Duration.minutes(1), Duration.minutes(5)
PUBLISHED_EVERY = Duration.minutes(2)
"""Time between two values of our nodes (assets/bootstrap/metrics/cloudwatch.py, steps/85-start-timers.sh)."""

# Metrics that our nodes publish themselves (assets/bootstrap/metrics).
OWN_NAMESPACE = "TrainingCluster"
NODE_STATES = ("allocated", "idle", "powering_up", "powering_down", "down")
ACCELERATOR_METRICS = ("AcceleratorUtilization", "AcceleratorMemoryUsed")
ACCELERATOR_USE, ACCELERATOR_MEMORY = ACCELERATOR_METRICS

# Namespaces of what ParallelCluster publishes: by filters of its log, by CloudWatch's agent on the head node.
LIBRARY_NAMESPACE = "ParallelCluster"
AGENT_NAMESPACE = "CWAgent"
HEARTBEAT = "ClustermgtdHeartbeat"


@dataclass(frozen=True, kw_only=True)
class ClusterMetrics:
    """Metrics of one cluster. Ids may be CDK tokens."""

    cluster_name: str
    head_node_instance_id: str
    lustre_id: str
    partitions: Sequence[str]
    """Names of the cluster's Slurm partitions."""
    published: Published

    def head_node_cpu(self) -> cloudwatch.Metric:
        """Return the head node's CPU use, percent. EC2 publishes it every five minutes."""
        return self._of_head_node("AWS/EC2", "CPUUtilization", "Average", FIVE_MINUTES)

    def head_node_memory(self) -> cloudwatch.Metric:
        """Return the head node's memory in use, percent."""
        return self._of_head_node(AGENT_NAMESPACE, "mem_used_percent", "Maximum")

    def head_node_disk(self) -> cloudwatch.Metric:
        """Return the used part of the head node's root volume, percent."""
        return self._of_head_node(AGENT_NAMESPACE, "disk_used_percent", "Maximum", path="/")

    def head_node_checks(self) -> cloudwatch.Metric:
        """Return the metric that is 1 when EC2's checks of the head node fail; none for a stopped node."""
        return self._of_head_node("AWS/EC2", "StatusCheckFailed", "Maximum")

    def heartbeat(self) -> cloudwatch.Metric:
        """Return the metric that is 1 for each minute in which clustermgtd was alive."""
        return self._of_head_node(LIBRARY_NAMESPACE, HEARTBEAT, "Maximum", ClusterName=self.cluster_name)

    def launch_failures(self) -> dict[str, cloudwatch.IMetric]:
        """Return the numbers of nodes that did not start, by cause. Without a failure there is no value."""
        return {
            f"failures{number}": cloudwatch.Metric(
                namespace=LIBRARY_NAMESPACE,
                metric_name=name,
                dimensions_map={"ClusterName": self.cluster_name},
                statistic="Sum",
                period=FIVE_MINUTES,
                label=name,
            )
            for number, name in enumerate(LAUNCH_FAILURES)
        }

    def braked_checks(self) -> cloudwatch.Metric:
        """Return the number of braked health checks; no value without one (health/drain_limit.sh)."""
        return self._own("BrakedChecks", "Maximum")

    def nodes(self, partition: str, state: str) -> cloudwatch.Metric:
        """Return the number of a partition's nodes in one state."""
        dimensions = {"Partition": partition, "State": state}
        return self._own("Nodes", "Average", **dimensions).with_(label=state)

    def accelerators(self, name: str, statistic: str) -> cloudwatch.Metric:
        """Return a metric of the accelerators of all running nodes, percent."""
        return self._own(name, statistic).with_(label=statistic.lower())

    def lustre(self, name: str, statistic: str = "Sum") -> cloudwatch.Metric:
        """Return one of FSx's metrics; each of the file system's disks publishes a value a minute."""
        return cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name=name,
            dimensions_map={"FileSystemId": self.lustre_id},
            statistic=statistic,
            period=FIVE_MINUTES,
        )

    def lustre_free_percent(self) -> cloudwatch.MathExpression:
        """Return the free space, percent; FSx publishes free and used space, and no capacity."""
        return cloudwatch.MathExpression(
            expression="100 * free / (free + used)",
            using_metrics={
                "free": self.lustre("FreeDataStorageCapacity"),
                "used": self.lustre("PhysicalDiskUsage"),
            },
            label="free, percent",
            period=FIVE_MINUTES,
        )

    def _of_head_node(
        self, namespace: str, name: str, statistic: str, period: Duration = MINUTE, **dimensions: str
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=namespace,
            metric_name=name,
            dimensions_map={"InstanceId": self.head_node_instance_id, **dimensions},
            statistic=statistic,
            period=period,
        )

    def _own(self, name: str, statistic: str, **dimensions: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=OWN_NAMESPACE,
            metric_name=name,
            dimensions_map={"ClusterName": self.cluster_name, **dimensions},
            statistic=statistic,
            period=PUBLISHED_EVERY,
        )


def account_charges() -> cloudwatch.Metric:
    """Return the account's charges of this month, USD; published several times a day, in us-east-1."""
    return cloudwatch.Metric(
        namespace="AWS/Billing",
        metric_name="EstimatedCharges",
        dimensions_map={"Currency": "USD"},
        statistic="Maximum",
        period=Duration.hours(6),
        label="the whole account",
    )
