"""The guard: a custom resource that fails an update before anything that holds data could be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from aws_cdk import Duration, RemovalPolicy
from constructs import Construct

from training_cluster.functions.custom_resource import FunctionResource
from training_cluster.paths import ASSETS

KEPT = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Of everything that holds data: it outlives its stack and its replacement. Only the very stack that fails to
be created takes it along, since it is empty then.
"""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A value that decides whether CloudFormation replaces something."""

    value: str
    """May be a token; "" where an id stands for one of ours."""
    may: Literal["changes", "alone", "grows", "adopts", "never"]
    """changes freely; changes alone, with no other value; grows, as a number, and alone; adopts: from "" to
    an id, the own resource being retained then; never changes.
    """
    safe_way: str = ""
    """What to type instead, in a sentence or two; `{old}` and `{new}` are filled in."""


class Guard(FunctionResource):
    """Receives every create-only value of its stack, and refuses an update that changes one.

    CloudFormation updates it before what depends on it (`protect`), so a refusal comes before anything was
    touched. It names the flag, both values and the safe way. A rollback always passes.

    Args:
        values: by name of the flag.
    """

    def __init__(self, scope: Construct, id_: str, *, values: Mapping[str, Kept]) -> None:
        super().__init__(
            scope,
            id_,
            name="Values",
            resource_type="Custom::Guard",
            code=ASSETS / "guard",
            # It may ask for two minutes whether the stack rolls back.
            timeout=Duration.minutes(5),
            properties={"Values": {name: asdict(kept) for name, kept in values.items()}},
        )

    def protect(self, *holders: Construct) -> None:
        """Let CloudFormation ask the guard before it touches anything in these."""
        for holder in holders:
            holder.node.add_dependency(self.resource)
