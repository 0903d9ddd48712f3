"""Mail of jobs: a topic that compute nodes publish to, with a subscription for each address of job_emails."""

from collections.abc import Sequence

from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from training_cluster.stack_names import jobs_topic

USER_ATTRIBUTE = "user"
"""Attribute of a message with its job's user, by which SNS selects addresses (trainkit/mail.py)."""


class JobMails(Construct):
    """Topic of a cluster's jobs.

    Args:
        mails: user and address; a user of None gets the mail of all jobs.
    """

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
