"""The guard: a custom resource that fails an update which would replace something that holds data."""

from collections.abc import Mapping

from aws_cdk import CustomResource, Duration, RemovalPolicy
from constructs import Construct, IConstruct

from training_cluster.flags.given import left_out, own_flags
from training_cluster.flags.settings import Settings
from training_cluster.functions.custom_resource import SERVICE_TIMEOUT, FunctionResource
from training_cluster.functions.guarded import Guarded
from training_cluster.paths import ASSETS
from training_cluster.stack_names import CLUSTER_STACK, GUARD_TYPE

RETAINED = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Removal policy of everything that holds data: it outlives its stack and its replacement. It is
deleted only with a stack whose creation failed, since it is empty then.
"""


class Guard(FunctionResource):
    """Custom resource with the guarded values of its stack; its function refuses forbidden changes.

    CloudFormation updates it before the resources that depend on it (`protect`), so a refusal comes before
    any change. The error names the flag, both values and the safe way. A rollback is always allowed.

    Args:
        values: guarded values by the name of their flag.
        settings: of the cluster, whose names may be somebody else's (assets/guard/names.py), and whose last
            deploy had flags that this one may not leave out; None in all but
            the first stack.
    """

    def __init__(
        self, scope: Construct, id_: str, *, values: Mapping[str, Guarded], settings: Settings | None = None
    ) -> None:
        remembered = {"Cluster": settings.names, "LeftOut": left_out(settings)} if settings else {}
        super().__init__(
            scope,
            id_,
            name="Values",
            resource_type=GUARD_TYPE,
            code=ASSETS / "guard",
            # The function may wait two minutes to learn whether the stack rolls back.
            timeout=Duration.minutes(5),
            properties={"Values": {name: each.as_property() for name, each in values.items()}} | remembered,
            read_stacks=f"{CLUSTER_STACK}*" if settings else None,
            actions=["cloudformation:ListImports", *(["ec2:DescribeKeyPairs"] if settings else [])],
            purpose="Asks for the status of its own stack, the stacks that import from it, and clusters",
        )

    def protect(self, *holders: IConstruct) -> None:
        """Make CloudFormation update the guard before any resource of the holders."""
        for holder in holders:
            holder.node.add_dependency(self.resource)


def guard_cluster(scope: Construct, id_: str, *, service_token: str, settings: Settings) -> CustomResource:
    """Add a custom resource that asks the first stack's guard about the cluster's names and flags again.

    The first stack asks nothing where its inputs are those of its last deploy, or with `--exclusively`.
    """
    flags = {"LeftOut": left_out(settings), "Flags": own_flags(settings)}
    properties = {"Values": {}, "Cluster": settings.names, **flags}
    return CustomResource(
        scope,
        id_,
        service_token=service_token,
        resource_type=GUARD_TYPE,
        properties=properties,
        service_timeout=SERVICE_TIMEOUT,
    )
