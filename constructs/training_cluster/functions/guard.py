"""The guard: a custom resource that fails an update which would replace something that holds data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from aws_cdk import Duration, RemovalPolicy
from constructs import Construct

from training_cluster.functions.custom_resource import FunctionResource
from training_cluster.paths import ASSETS
from training_cluster.stack_names import GUARD_TYPE

RETAINED = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Removal policy of everything that holds data: it outlives its stack and its replacement. It is
deleted only with a stack whose creation failed, since it is empty then.
"""


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A value whose change may make CloudFormation replace what holds data."""

    value: str
    """Value of the flag, which may be a token; "" where the app creates the resource."""
    policy: Literal["changes", "alone", "grows", "adopts", "never"]
    """The change that the guard allows: `changes`, any; `alone`, any, but with no other value; `grows`, to a
    larger number, and alone; `adopts`, from "" to an id, the own resource being retained; `never`, none.
    """
    safe_way: str = ""
    """Text of what to type instead, in a sentence or two; `{old}` and `{new}` are filled in."""
    note: str = ""
    """Effect of a change that is allowed, for `trainctl plan`."""

    def as_property(self) -> dict[str, str]:
        """Return the value as the guard's function receives it (assets/guard)."""
        return {"value": self.value, "may": self.policy, "safe_way": self.safe_way}


class Guard(FunctionResource):
    """Custom resource with the guarded values of its stack; its function refuses forbidden changes.

    CloudFormation updates it before the resources that depend on it (`protect`), so a refusal comes before
    any change. The error names the flag, both values and the safe way. A rollback is always allowed.

    Args:
        values: guarded values by the name of their flag.
    """

    def __init__(self, scope: Construct, id_: str, *, values: Mapping[str, Guarded]) -> None:
        super().__init__(
            scope,
            id_,
            name="Values",
            resource_type=GUARD_TYPE,
            code=ASSETS / "guard",
            # The function may wait two minutes to learn whether the stack rolls back.
            timeout=Duration.minutes(5),
            properties={"Values": {name: each.as_property() for name, each in values.items()}},
        )

    def protect(self, *holders: Construct) -> None:
        """Make CloudFormation update the guard before any resource of the holders."""
        for holder in holders:
            holder.node.add_dependency(self.resource)
