"""Monthly budget of one cluster's costs, with mails before the money is spent."""

import hashlib

from aws_cdk import Annotations, Aws
from aws_cdk import aws_budgets as budgets
from constructs import Construct

from training_cluster.flags.account import CLUSTER_TAG, REGIONS_WITHOUT_BUDGETS

ACTIVATE_TAG = (
    "aws ce update-cost-allocation-tags-status --region us-east-1 --cost-allocation-tags-status "
    f"TagKey={CLUSTER_TAG},Status=Active"
)

_WHEN = (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))


class MonthlyBudget(Construct):
    """Budget of the resources with the cluster's tag: its nodes, their disks, its own stacks.

    Resources that clusters share (network, Lustre, EFS, the bucket) lack such a tag and are not counted.
    """

    def __init__(self, scope: Construct, id_: str, *, cluster_name: str, usd: int, email: str) -> None:
        super().__init__(scope, id_)
        # Another address replaces the budget, and the new one is created before the old one is deleted, so it
        # needs another name. Names are unique in the account, over all regions.
        digest = hashlib.sha256(email.encode()).hexdigest()[:8]
        budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=f"training-{cluster_name}-{Aws.REGION}-{digest}",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=usd, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{CLUSTER_TAG}${cluster_name}"]},
            ),
            notifications_with_subscribers=[_notification(kind, percent, email) for kind, percent in _WHEN],
        )
        Annotations.of(self).add_warning_v2(
            "training-cluster:budget-tag",
            f"budget_usd={usd} counts nothing until {CLUSTER_TAG} is a cost allocation tag. AWS lists a tag "
            "up to a day after something first carries it; then type, in the account that pays: "
            f"`{ACTIVATE_TAG}`. The budget counts this cluster's own stacks, not what clusters share "
            "(network, file systems, bucket). CloudFormation has no budgets in "
            f"{', '.join(REGIONS_WITHOUT_BUDGETS)}: leave budget_usd out there",
        )


def _notification(
    kind: str, percent: int, email: str
) -> budgets.CfnBudget.NotificationWithSubscribersProperty:
    return budgets.CfnBudget.NotificationWithSubscribersProperty(
        notification=budgets.CfnBudget.NotificationProperty(
            notification_type=kind,
            comparison_operator="GREATER_THAN",
            threshold=percent,
            threshold_type="PERCENTAGE",
        ),
        subscribers=[budgets.CfnBudget.SubscriberProperty(address=email, subscription_type="EMAIL")],
    )
