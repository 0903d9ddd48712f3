"""Which zone a deploy takes for a network of ours, and which others would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ops.asset_code import asset_code
from ops.preflight.finding import Finding
from ops.preflight.place import Place
from training_cluster.flags.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a deploy would do."""

    zone_id: str | None
    """None where it would stop."""
    zone_name: str | None
    fitting: tuple[str, ...]
    """Ids of the zones that have all instance types."""
    refusal: str
    """In the deploy's words; "" where it goes on."""


Chooser = Callable[[], Choice]
"""Asks once, when the first check wants to know."""


def choose_zone(settings: Settings, place: Place, reservation_id: str | None, ec2: Any) -> Choice:
    """Ask EC2 what the deploy would ask.

    Args:
        reservation_id: of one that is there; whether it is, another check says.
    """
    code = asset_code("compute_zone", "region", "choice")
    region = code.region.Region(ec2)
    types = tuple(settings.instance_types)
    request = code.choice.ZoneRequest(
        zone=settings.zone, instance_types=types, reservation_id=reservation_id or ""
    )
    kept = code.choice.find(place.zone_id, region) if place.zone_id else None
    fitting = tuple(
        each.id
        for each in region.zones
        if each.available and all(each.id in region.zone_ids_with(type_) for type_ in types)
    )
    try:
        zone = code.choice.keep(kept, request, region) if kept else code.choice.choose(request, region)
    except code.choice.RefusedError as error:
        return Choice(zone_id=None, zone_name=None, fitting=fitting, refusal=str(error))
    return Choice(zone_id=zone.id, zone_name=zone.name, fitting=fitting, refusal="")


def check_zone(choose: Chooser, settings: Settings, place: Place) -> Iterator[Finding]:
    """Of a network of ours, made already or not; your own has its own checks (instance_types.py)."""
    if settings.vpc_id:
        return
    choice = choose()
    types = ", ".join(settings.instance_types)
    check = f"zone with {types}"
    if choice.refusal:
        if choice.fitting:
            mend = f"-c zone={choice.fitting[0]}"
        else:
            mend = "another region (export AWS_REGION=...) or -c family=...: docs/families.md lists zones"
        yield Finding(check=check, found=choice.refusal, verdict="problem", mend=mend)
        return
    here = f"{choice.zone_id} ({choice.zone_name})"
    others = ", ".join(each for each in choice.fitting if each != choice.zone_id) or "no other"
    if place.zone_id:
        found = f"{here}, where the network is"
    else:
        found = f"a deploy takes {here}; -c zone=... takes another that has them: {others}"
    yield Finding(check=check, found=found)
