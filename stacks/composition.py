"""Which stacks there are for the settings, and what each is given of the others."""

from __future__ import annotations

from aws_cdk import CfnResource, CfnWaitConditionHandle, Stack, Tags
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.accounting_stack import AccountingStack
from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from stacks.training_cluster_stack import TrainingClusterStack
from training_cluster.settings import Settings

# A change of their tags replaces them, and with them a key by the same name, or the nodes' group.
NEVER_RETAGGED = ("AWS::EC2::KeyPair", "AWS::EC2::PlacementGroup")


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
    stacks.append(cluster)
    for stack in stacks:
        _apply_account_flags(stack, settings)
        if not any(isinstance(each, CfnResource) for each in stack.node.find_all()):
            # You brought all of it, and CloudFormation takes no stack without a resource: this one is
            # nothing but an address.
            CfnWaitConditionHandle(stack, "Nothing")
    return stacks


def _apply_account_flags(stack: Stack, settings: Settings) -> None:
    for key, value in settings.own_tags.items():
        Tags.of(stack).add(key, value, exclude_resource_types=list(NEVER_RETAGGED))
    if settings.permissions_boundary:
        policy = iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", settings.permissions_boundary)
        iam.PermissionsBoundary.of(stack).apply(policy)
