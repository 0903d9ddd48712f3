"""Monitoring of a cluster: metrics on a dashboard, alarms, mail of jobs, a budget."""

from collections.abc import Sequence

from aws_cdk import Annotations
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from training_cluster.catalog.alerts import alert_names
from training_cluster.cluster.nodes import Rendered
from training_cluster.cluster.queues import types_of
from training_cluster.flags.monitoring import mails_of
from training_cluster.flags.settings import Settings
from training_cluster.monitoring.alarms import Alarms
from training_cluster.monitoring.budget import MonthlyBudget
from training_cluster.monitoring.dashboard import ClusterDashboard
from training_cluster.monitoring.metrics import ClusterMetrics
from training_cluster.monitoring.published import Published
from training_cluster.stack_names import jobs_topic, rules_topic

USER_ATTRIBUTE = "user"
"""Attribute of a message with its job's user, by which SNS selects addresses (trainkit/notify.py)."""


class Monitoring(Construct):
    """Dashboard and alarms of a cluster; with job_emails the topic of its jobs, with budget_usd its budget.

    Args:
        config: the final cluster config, which decides what ParallelCluster publishes.

    Attributes:
        dashboard_name: name of the dashboard in CloudWatch.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        config: Rendered,
        head_node_instance_id: str,
        lustre_id: str,
    ) -> None:
        super().__init__(scope, id_)
        metrics = ClusterMetrics(
            cluster_name=settings.cluster_name,
            head_node_instance_id=head_node_instance_id,
            lustre_id=lustre_id,
            partitions=[queue["Name"] for queue in config["Scheduling"]["SlurmQueues"]],
            published=Published.by(config),
        )
        first, *_ = config["Scheduling"]["SlurmQueues"]
        accelerator = types_of(first["ComputeResources"][0])[0].family.accelerator
        alarms = Alarms(
            self,
            "Alarms",
            metrics=metrics,
            email=settings.alarm_email,
            topic_name=None if settings.metrics == "cloudwatch" else rules_topic(settings.cluster_name),
        )
        self.dashboard_name = ClusterDashboard(
            self,
            "Dashboard",
            metrics=metrics,
            alarms=alarms.alarms,
            accelerator=None if accelerator.kind == "none" else accelerator.name,
            budget_usd=settings.budget_usd,
        ).name
        if alarms.missing:
            Annotations.of(self).add_warning_v2(
                "training-cluster:alarms-without-metrics",
                f"overrides: {', '.join(metrics.published.switched_off)}: false: ParallelCluster publishes "
                f"no metric for {' and '.join(alarms.missing)}: no such alarm exists, and the dashboard "
                "omits it",
            )
        if settings.metrics == "cloudwatch":
            Annotations.of(self).add_info(
                "metrics=cloudwatch: alarms report the head node, the scheduler, Lustre, nodes that do not "
                f"start and braked health checks. -c metrics=prometheus adds {', '.join(alert_names())}"
            )
        if settings.alarm_email:
            Annotations.of(self).add_info(
                f"alarm_email={settings.alarm_email}: AWS sends it a mail with a link. Until somebody "
                "follows the link, no alarm arrives; a budget writes without it"
            )
        if mails := mails_of(settings.job_emails):
            JobMails(self, "JobMails", cluster_name=settings.cluster_name, mails=mails)
            Annotations.of(self).add_info(
                "job_emails: AWS sends each new address a mail with a link. Until somebody follows the link, "
                "it gets no mail of jobs"
            )
        if settings.budget_usd and settings.alarm_email:
            MonthlyBudget(
                self,
                "Budget",
                cluster_name=settings.cluster_name,
                usd=settings.budget_usd,
                email=settings.alarm_email,
            )


class JobMails(Construct):
    """Topic of a cluster's jobs. `mails`: user and address; a user of None gets the mail of all jobs."""

    def __init__(
        self, scope: Construct, id_: str, *, cluster_name: str, mails: Sequence[tuple[str | None, str]]
    ) -> None:
        super().__init__(scope, id_)
        # Its name is in the nodes' policy and bundle. It has no key for the reason of Alarms' topic.
        topic = sns.Topic(
            self,
            "Topic",
            enforce_ssl=True,
            display_name=f"Jobs of {cluster_name}",
            topic_name=jobs_topic(cluster_name),
        )
        addresses = dict.fromkeys(address for _, address in mails)
        for address in addresses:
            users = [user for user, other in mails if other == address and user is not None]
            gets_all = (None, address) in mails
            own = {USER_ATTRIBUTE: sns.SubscriptionFilter.string_filter(allowlist=users)}
            topic.add_subscription(
                subscriptions.EmailSubscription(address, filter_policy=None if gets_all else own)
            )
