"""Composition of the stacks for the settings."""

from aws_cdk import Stack, Tags
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from stacks.training_cluster_stack import TrainingClusterStack
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import CLUSTER_STACK, IMAGE_ID

# A change of their tags replaces these resources, so a key pair of the same name, or the nodes' group.
NEVER_RETAGGED = ("AWS::EC2::KeyPair", "AWS::EC2::PlacementGroup")


def add_stacks(app: Construct, settings: Settings) -> list[Stack]:
    """Add all stacks to the app. Their ids are fixed: `cdk deploy TrainingClusterStack` selects by id."""
    network_stack = NetworkStack(app, "NetworkStack", settings=settings)
    network = network_stack.network
    storage_stack = StorageStack(app, "StorageStack", settings=settings, network=network)
    stacks: list[Stack] = [network_stack, storage_stack]
    accounting = None
    if settings.accounting == "new":
        # Imported only when needed: aws_rds alone takes a tenth of a second of every synth.
        from stacks.accounting_stack import AccountingStack  # noqa: PLC0415

        accounting_stack = AccountingStack(app, "AccountingStack", network=network)
        accounting = accounting_stack.accounting
        stacks.append(accounting_stack)
    cluster = TrainingClusterStack(
        app,
        CLUSTER_STACK,
        settings=settings,
        network=network,
        storage=storage_stack.storage,
        accounting=accounting,
    )
    cluster.add_stack_dependency(storage_stack)  # CDK does not see its imports by name
    if settings.node_image == "build":
        from stacks.image_stack import ImageStack  # noqa: PLC0415

        image = ImageStack(app, IMAGE_ID, settings=settings, network=network, storage=storage_stack.storage)
        image.add_stack_dependency(storage_stack)
        cluster.add_stack_dependency(image)  # Image Builder writes the parameter that the cluster reads
        stacks.append(image)
    stacks.append(cluster)
    for stack in stacks[1:]:
        stack.add_stack_dependency(network_stack)  # all import from it by name
    for stack in stacks:
        _apply_account_flags(stack, settings)
    return stacks


def _apply_account_flags(stack: Stack, settings: Settings) -> None:
    # For cost allocation. It never changes during a stack's life, so every resource may have it.
    whose = settings.cluster_name if isinstance(stack, TrainingClusterStack) else SHARED
    Tags.of(stack).add(CLUSTER_TAG, whose)
    for key, value in settings.own_tags.items():
        Tags.of(stack).add(key, value, exclude_resource_types=list(NEVER_RETAGGED))
    if settings.permissions_boundary:
        policy = iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", settings.permissions_boundary)
        iam.PermissionsBoundary.of(stack).apply(policy)
