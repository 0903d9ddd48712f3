"""Checks of names that others have, and of the budget, which the account or the region may not have."""

from collections.abc import Iterator

from ops.account.session import ClientOf
from ops.asset_code import asset_code
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.flags.account import REGIONS_WITHOUT_BUDGETS
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_stack_name
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK


def check_budget(settings: Settings, account: str, client: ClientOf) -> Iterator[Finding]:
    """Check that these credentials may read the account's budgets, which an organisation may forbid."""
    if settings.budget_usd is None:
        return
    answer = client("budgets").describe_budgets(AccountId=account)
    budgets = [each["BudgetName"] for each in answer.get("Budgets", [])]
    yield Finding(
        check="budget_usd: budgets of the account",
        found=f"{len(budgets)} exist; this one would notify {settings.alarm_email}",
    )


def check_names(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check that nobody else has the names that the cluster needs, like the guard of NetworkStack."""
    if not existing.is_known:
        return
    taken = asset_code("guard", "names").names.taken
    for each in taken(settings.names, client("cloudformation"), client("ec2")):
        found, _, mend = each.partition(". Type: ")
        yield Finding(
            check=f"names of the cluster {settings.cluster_name}", found=found, verdict="problem", mend=mend
        )


def check_account(settings: Settings, existing: ExistingNetwork, region: str) -> Iterator[Finding]:
    """Check for stacks of others with our names, and that the region has budgets."""
    needed = {NETWORK_STACK, STORAGE_STACK, settings.stack_name}
    needed |= {ACCOUNTING_STACK} if settings.accounting == "new" else set()
    needed |= {image_stack_name(settings)} if settings.node_image == "build" else set()
    for name in existing.foreign_stacks:
        if name in needed:
            yield Finding(
                check=f"stack {name}",
                found="exists, and is not Training Cluster's; a deploy would take it over, and delete its "
                "resources",
                verdict="problem",
                mend="deploy in another region or account: export AWS_REGION=...",
            )
    if settings.budget_usd is not None:
        yield finding(
            f"budget_usd in {region}",
            "CloudFormation has no budgets here" if region in REGIONS_WITHOUT_BUDGETS else "possible",
            good=region not in REGIONS_WITHOUT_BUDGETS,
            mend="leave budget_usd out",
        )
