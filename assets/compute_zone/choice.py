"""Which zone the network gets, or why none will do: with the zones that would, and what to type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from region import Region, Zone

AUTO = "auto"


class RefusedError(Exception):
    """The flags ask for what cannot be; its text is for people."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the flags say of the zone."""

    zone: str
    """auto, a zone's name or its id."""
    instance_types: tuple[str, ...]
    """All that the cluster uses: the zone has to offer every one."""
    reservation_id: str
    """cr-..., whose zone it has to be; empty without one."""


def choose(wish: Wish, region: Region) -> Zone:
    """The zone of a new network: the one asked for, else the first in the order of their ids.

    Raises:
        RefusedError: it does not offer every instance type, or is not the reservation's.
    """
    asked, fitting = _asked_for(wish, region), _fitting(wish, region)
    if asked is None and fitting:
        return fitting[0]
    if asked is None:
        raise RefusedError(_zones_that_do(wish, region))
    if asked in fitting:
        return asked
    lacking = _lacking(asked, wish, region)
    problem = f"which does not offer {lacking}" if lacking else "which is not available now"
    if wish.reservation_id:
        mend = " Type other instance types, or another reservation."
    else:
        mend = f" Type: -c zone={fitting[0].id}, or leave zone out." if fitting else ""
    raise RefusedError(f"{_source(wish)} {asked}, {problem}. {_zones_that_do(wish, region)}{mend}")


def keep(kept: Zone, wish: Wish, region: Region) -> Zone:
    """The zone of a network that is there already.

    Raises:
        RefusedError: the flags ask for another one, or for an instance type that it does not offer.
    """
    asked = _asked_for(wish, region)
    if asked not in (None, kept):
        problem = f"{_source(wish)} {asked}"
    elif lacking := _lacking(kept, wish, region):
        problem = f"that zone does not offer {lacking}"
    else:
        return kept
    raise RefusedError(
        f"The network stays in {kept} for good, and {problem}. {_zones_that_do(wish, region)} Nothing was "
        f"changed. Type flags that {kept.id} can serve, or deploy in another region; or destroy all stacks "
        'in order (README: "Take it down") and deploy anew.'
    )


def beside(zone: Zone, region: Region) -> Zone:
    """Choose a second zone: the first available one beside the network's; itself where there is no other."""
    return next((each for each in region.zones if each.available and each != zone), zone)


def find(zone: str, region: Region) -> Zone | None:
    """A zone by its id or name; None when this account has none such here."""
    return next((each for each in region.zones if zone in (each.id, each.name)), None)


def _asked_for(wish: Wish, region: Region) -> Zone | None:
    """The reservation's zone, else the one that is named; None for any."""
    named = None
    if wish.zone != AUTO:
        named = find(wish.zone, region)
        if named is None:
            raise RefusedError(
                f"zone={wish.zone}: {region.name} has none such for this account. "
                f"{_zones_that_do(wish, region)}"
            )
    if not wish.reservation_id:
        return named
    place = region.zone_of_reservation(wish.reservation_id)
    reserved = find(place, region) if place else None
    if reserved is None:
        where = f"is in {place}" if place else "is not there"
        raise RefusedError(
            f"The reservation {wish.reservation_id} {where}, for this account in {region.name}."
        )
    if named not in (None, reserved):
        raise RefusedError(
            f"The reservation {wish.reservation_id} is in {reserved}, and zone={wish.zone} is {named}. "
            f"Type: -c zone={reserved.id}, or leave zone out."
        )
    return reserved


def _fitting(wish: Wish, region: Region) -> list[Zone]:
    return [each for each in region.zones if each.available and not _lacking(each, wish, region)]


def _lacking(zone: Zone, wish: Wish, region: Region) -> str:
    return ", ".join(each for each in wish.instance_types if zone.id not in region.zone_ids_with(each))


def _source(wish: Wish) -> str:
    """To be followed by the zone that it names."""
    return f"the reservation {wish.reservation_id} is in" if wish.reservation_id else f"zone={wish.zone} is"


def _zones_that_do(wish: Wish, region: Region) -> str:
    if fitting := _fitting(wish, region):
        return f"Zones that offer all of {', '.join(wish.instance_types)}: {_joined(fitting)}."
    each = "; ".join(
        f"{name}: {_joined(sorted(region.zone_ids_with(name))) or 'none'}" for name in wish.instance_types
    )
    return (
        f"No zone of {region.name} offers all instance types ({each}). Type another family, instance_type "
        "or head_node_type, or deploy in another region: docs/families.md."
    )


def _joined(zones: Iterable[Zone | str]) -> str:
    return ", ".join(str(each) for each in zones)
