"""What stands in a deploy's way, whatever the network: stacks of others by our names, services that lack."""

from __future__ import annotations

from collections.abc import Iterator

from ops.account.session import ClientOf
from ops.preflight.finding import Finding, judged
from ops.preflight.place import Place
from training_cluster.flags.account import REGIONS_WITHOUT_BUDGETS
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_stack_name
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK


def check_budget(settings: Settings, account: str, client: ClientOf) -> Iterator[Finding]:
    """Whether these credentials see the account's budgets; an organisation may keep them to itself."""
    if settings.budget_usd is None:
        return
    answer = client("budgets").describe_budgets(AccountId=account)
    there = [each["BudgetName"] for each in answer.get("Budgets", [])]
    yield Finding(
        check="budget_usd: budgets of the account",
        found=f"{len(there)} there; this one would be told to {settings.alarm_email}",
    )


def check_account(settings: Settings, place: Place, region: str) -> Iterator[Finding]:
    """Of account and region as a whole."""
    needed = {NETWORK_STACK, STORAGE_STACK, settings.stack_name}
    needed |= {ACCOUNTING_STACK} if settings.accounting == "new" else set()
    needed |= {image_stack_name(settings)} if settings.node_image == "build" else set()
    for name in place.foreign_stacks:
        if name in needed:
            yield Finding(
                check=f"stack {name}",
                found="one that is not Training Cluster's is there; a deploy would take it over, and delete "
                "what is in it",
                verdict="problem",
                mend="deploy in another region or account: export AWS_REGION=...",
            )
    if settings.budget_usd is not None:
        yield judged(
            f"budget_usd in {region}",
            "CloudFormation has no budgets here" if region in REGIONS_WITHOUT_BUDGETS else "possible",
            good=region not in REGIONS_WITHOUT_BUDGETS,
            mend="leave budget_usd out",
        )
