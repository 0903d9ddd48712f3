"""Which stacks there are for the settings, and what each is given of the others."""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct

from stacks.accounting_stack import AccountingStack
from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from stacks.training_cluster_stack import TrainingClusterStack
from training_cluster.settings import Settings


def add_stacks(app: Construct, settings: Settings) -> list[Stack]:
    """Add all stacks to the app. Their ids are fixed: `cdk deploy TrainingClusterStack` selects by id."""
    network_stack = NetworkStack(app, "NetworkStack", settings=settings)
    network = network_stack.network
    storage_stack = StorageStack(app, "StorageStack", settings=settings, network=network)
    stacks: list[Stack] = [network_stack, storage_stack]
    accounting = None
    if settings.accounting == "new":
        accounting_stack = AccountingStack(app, "AccountingStack", network=network)
        accounting = accounting_stack.accounting
        stacks.append(accounting_stack)
    cluster = TrainingClusterStack(
        app,
        "TrainingClusterStack",
        settings=settings,
        network=network,
        storage=storage_stack.storage,
        accounting=accounting,
    )
    return [*stacks, cluster]
