"""Alarms that need no Prometheus: a dead head node, a silent scheduler, a full file system."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from training_cluster.monitoring.metrics import FIVE_MINUTES, ClusterMetrics

LEAST_FREE_PERCENT = 10

_Compare = cloudwatch.ComparisonOperator
_Missing = cloudwatch.TreatMissingData


class Alarms(Construct):
    """Five alarms and, with an address, a topic that mails them; none on a metric that nothing publishes.

    Args:
        topic_name: name of the topic, if the head node publishes to it, too; None for
            CloudFormation's.

    Attributes:
        alarms: the alarms, for the dashboard.
        missing: names of those that the cluster config leaves without their metric.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        metrics: ClusterMetrics,
        email: str | None,
        topic_name: str | None = None,
    ) -> None:
        super().__init__(scope, id_)
        # No cluster's name has an underscore, so no name of ParallelCluster's is equal.
        self._prefix = f"TrainingCluster_{metrics.cluster_name}_"
        heartbeat, failures = metrics.published.heartbeat, metrics.published.launch_failures
        self.alarms: Sequence[cloudwatch.Alarm] = (
            self._head_node_dead(metrics),
            *([self._scheduler_silent(metrics)] if heartbeat else []),
            self._lustre_full(metrics),
            *([self._nodes_not_starting(metrics)] if failures else []),
            self._check_braked(metrics),
        )
        needed = {"SchedulerSilent": heartbeat, "NodesNotStarting": failures}
        self.missing = tuple(name for name, is_published in needed.items() if not is_published)
        if email:
            topic = self._topic(metrics.cluster_name, email, topic_name)
            for alarm in self.alarms:
                alarm.add_alarm_action(actions.SnsAction(topic))

    def _head_node_dead(self, metrics: ClusterMetrics) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            "HeadNodeDead",
            alarm_name=f"{self._prefix}HeadNodeDead",
            alarm_description="The head node fails EC2's checks, or does not run. Jobs on compute nodes go "
            "on for a while; nobody can submit. Look at the instance in EC2; start it if it is stopped.",
            metric=metrics.head_node_checks(),
            comparison_operator=_Compare.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            threshold=1,
            evaluation_periods=5,
            # A stopped or terminated instance publishes nothing.
            treat_missing_data=_Missing.BREACHING,
        )

    def _scheduler_silent(self, metrics: ClusterMetrics) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            "SchedulerSilent",
            alarm_name=f"{self._prefix}SchedulerSilent",
            alarm_description="clustermgtd, which starts and stops nodes, was not alive for ten minutes. "
            "Nodes that are idle cost on. On the head node: /var/log/parallelcluster/clustermgtd",
            metric=metrics.heartbeat(),
            comparison_operator=_Compare.LESS_THAN_THRESHOLD,
            threshold=1,
            # From ParallelCluster's own alarm, which has no action: an update stops the daemon for a while.
            evaluation_periods=10,
            treat_missing_data=_Missing.BREACHING,
        )

    def _lustre_full(self, metrics: ClusterMetrics) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            "LustreFull",
            alarm_name=f"{self._prefix}LustreFull",
            alarm_description=f"Less than {LEAST_FREE_PERCENT} % of the Lustre file system is free: soon "
            "jobs cannot write. Delete old runs and checkpoints (what was exported stays in the bucket), or "
            "release files that the bucket has: lfs hsm_release FILE",
            metric=metrics.lustre_free_percent(),
            comparison_operator=_Compare.LESS_THAN_THRESHOLD,
            threshold=LEAST_FREE_PERCENT,
            evaluation_periods=3,
            # Shown as "insufficient data": an unknown value needs nobody's attention.
            treat_missing_data=_Missing.MISSING,
        )

    def _nodes_not_starting(self, metrics: ClusterMetrics) -> cloudwatch.Alarm:
        failures = metrics.launch_failures()
        return cloudwatch.Alarm(
            self,
            "NodesNotStarting",
            alarm_name=f"{self._prefix}NodesNotStarting",
            alarm_description="Nodes failed to start within the last hour. The dashboard shows why: no "
            "capacity, a limit, or our own scripts. On the head node: /var/log/parallelcluster/clustermgtd "
            "and slurm_resume.log",
            # With `+`, a metric without data counts as 0; AWS advises against SUM() in alarms.
            metric=cloudwatch.MathExpression(
                expression=" + ".join(failures), using_metrics=failures, period=FIVE_MINUTES
            ),
            comparison_operator=_Compare.GREATER_THAN_THRESHOLD,
            threshold=0,
            # It stays on for an hour after the last failure: Slurm tries again every few minutes, and one
            # mail an hour is enough.
            evaluation_periods=12,
            datapoints_to_alarm=1,
            treat_missing_data=_Missing.NOT_BREACHING,
        )

    def _check_braked(self, metrics: ClusterMetrics) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            "CheckBraked",
            alarm_name=f"{self._prefix}CheckBraked",
            alarm_description="A health check fails on most nodes, so it is taken to be wrong and drains "
            "none: jobs start on such nodes. The nodes' logs training-cluster-health name the check (BRAKED) "
            "and what to type",
            metric=metrics.braked_checks(),
            comparison_operator=_Compare.GREATER_THAN_THRESHOLD,
            threshold=0,
            evaluation_periods=1,
            treat_missing_data=_Missing.NOT_BREACHING,
        )

    def _topic(self, cluster_name: str, email: str, topic_name: str | None) -> sns.Topic:
        """Add a topic that this cluster's CloudWatch alarms may publish to, over TLS.

        It has no key: alarms may not use alias/aws/sns, and a key of our own adds nothing, since SNS stores
        messages on encrypted disks (Security Hub retired SNS.1, cdk-nag its SNS2) and sends mail in the
        clear.
        """
        topic = sns.Topic(
            self,
            "Topic",
            enforce_ssl=True,
            display_name=f"Training Cluster {cluster_name}",
            topic_name=topic_name,
        )
        alarms = Stack.of(self).format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=f"{self._prefix}*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsOfThisCluster",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={
                    "ArnLike": {"aws:SourceArn": alarms},
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                },
            )
        )
        topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic
