"""EC2 placement groups, which moto lacks: names, strategies and ARNs, without placement."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.cloudformation.handlers import register, simple
from rehearsal.local_aws.emulators import moto_actions
from rehearsal.local_aws.emulators.moto_actions import parameter
from rehearsal.local_aws.emulators.moto_types import Created, Properties


@dataclass(frozen=True, kw_only=True)
class PlacementGroup:
    """One placement group."""

    name: str
    strategy: str
    tags: dict[str, str]
    id: str = field(default_factory=lambda: f"pg-{uuid.uuid4().hex[:17]}")

    @property
    def arn(self) -> str:
        """ARN with which capacity reservations name the group."""
        return f"arn:aws:ec2:{REGION}:{ACCOUNT}:placement-group/{self.name}"

    def describe(self) -> dict[str, Any]:
        """Return its entry in DescribePlacementGroups."""
        return {
            "GroupName": self.name,
            "GroupId": self.id,
            "GroupArn": self.arn,
            "State": "available",
            "Strategy": self.strategy,
            "Tags": moto_actions.listed_tags(self.id, self.tags),
        }


_GROUPS: dict[str, PlacementGroup] = {}


def install() -> None:
    """Add the actions and the resource type."""
    moto_actions.make_taggable("placement-group", "pg")
    moto_actions.add("ec2", create_placement_group, describe_placement_groups, delete_placement_group)
    register("AWS::EC2::PlacementGroup", simple(_create, lambda name, _: _GROUPS.pop(name, None)))


def find(*, name: str | None = None, arn: str | None = None) -> PlacementGroup:
    """Find a group by its name or its ARN. Raises EC2's InvalidPlacementGroup.Unknown."""
    name = name or (arn or "").rpartition("/")[2]
    if name not in _GROUPS:
        raise moto_actions.error("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return _GROUPS[name]


def create_placement_group(self: Any) -> Any:
    """Answer CreatePlacementGroup."""
    name = parameter(self, "GroupName")
    if name in _GROUPS:
        raise moto_actions.error(
            "InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists."
        )
    _GROUPS[name] = PlacementGroup(
        name=name, strategy=parameter(self, "Strategy", "cluster"), tags=moto_actions.given_tags(self)
    )
    return moto_actions.answer(PlacementGroup=_GROUPS[name].describe())


def describe_placement_groups(self: Any) -> Any:
    """Answer DescribePlacementGroups, by name or id."""
    names, ids = parameter(self, "GroupNames", []), parameter(self, "GroupIds", [])
    groups = [find(name=name) for name in names] or [g for g in _GROUPS.values() if not ids or g.id in ids]
    return moto_actions.answer(PlacementGroups=[group.describe() for group in groups])


def delete_placement_group(self: Any) -> Any:
    """Answer DeletePlacementGroup."""
    del _GROUPS[find(name=parameter(self, "GroupName")).name]
    return moto_actions.answer()


def _create(logical_id: str, properties: Properties, stack: str) -> Created:
    name = properties.get("GroupName") or f"{stack}-{logical_id}-{uuid.uuid4().hex[:12]}"
    tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])}
    _GROUPS[name] = PlacementGroup(name=name, strategy=properties.get("Strategy", "cluster"), tags=tags)
    return name, {"GroupName": name}
