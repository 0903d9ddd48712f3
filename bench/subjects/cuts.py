"""Stacks that could be split further, and the waits of a first deploy that each split would save (ADR 42)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.subjects.critical_path import Resource

Resources = Mapping[str, Resource]
_LINK = "AWS::FSx::DataRepositoryAssociation"
_NAT = "AWS::EC2::NatGateway"
_CLUSTER = "Custom::TrainingCluster"


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A separate stack for some resources, which the CDK would deploy in parallel with another stack."""

    moved: str
    """The resources that it would hold, in words."""
    spares: Callable[[Resource, Resource, Resources], bool]
    """True if the first resource would no longer wait for the stack of the second."""


def _links(_waiting: Resource, other: Resource, _resources: Resources) -> bool:
    return other.type == _LINK


def _egress(waiting: Resource, other: Resource, resources: Resources) -> bool:
    behind_nat = any(resources[name].type == _NAT for name in other.waits_for)
    return waiting.stack == "StorageStack" and (other.type == _NAT or behind_nat)


def _provider(waiting: Resource, other: Resource, _resources: Resources) -> bool:
    return (
        waiting.stack == "TrainingClusterStack" and waiting.type != _CLUSTER and other.stack == "StorageStack"
    )


CUTS = (
    Cut(moved="the bucket's links", spares=_links),
    Cut(moved="the NAT gateway", spares=_egress),
    Cut(moved="the cluster's provider", spares=_provider),
)
"""The cuts, the largest gain first."""


def cut(resources: Resources, cuts: Sequence[Cut]) -> dict[str, Resource]:
    """Return the resources without the waits for stacks that the cuts would save."""

    def still_waits(waiting: Resource, name: str) -> bool:
        if waiting.waits_for[name] != "stack":
            return True
        return not any(each.spares(waiting, resources[name], resources) for each in cuts)

    return {
        name: replace(
            each,
            waits_for={other: kind for other, kind in each.waits_for.items() if still_waits(each, other)},
        )
        for name, each in resources.items()
    }
