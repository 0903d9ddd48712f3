"""The choice of the network's zone; a refusal lists the possible zones and the flags to type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from region import Region, Zone

AUTO = "auto"
# A custom resource's answer is 4096 bytes at most, and queues may have many instance types.
_MOST_NAMED = 5


class RefusedError(Exception):
    """The flags ask for an impossible zone; the text is for people."""


@dataclass(frozen=True, kw_only=True)
class ZoneRequest:
    """The flags that decide about the zone."""

    zone: str
    """`auto`, a zone's name or its id."""
    instance_types: tuple[str, ...]
    """Instance types of the cluster, all of which the zone must offer."""
    reservation_id: str
    """Capacity reservation (cr-...) whose zone it must be; empty without one."""


def choose(request: ZoneRequest, region: Region) -> Zone:
    """Choose the zone of a new network: the requested one, else the first possible one by id.

    Raises:
        RefusedError: the zone does not offer every instance type, or is not the reservation's.
    """
    asked, possible = _asked_for(request, region), _possible(request, region)
    if asked is None and possible:
        return possible[0]
    if asked is None:
        raise RefusedError(_possible_zones(request, region))
    if asked in possible:
        return asked
    lacking = _lacking(asked, request, region)
    problem = f"which does not offer {lacking}" if lacking else "which is not available now"
    if request.reservation_id:
        mend = " Type other instance types, or another reservation."
    else:
        mend = f" Type: -c zone={possible[0].id}, or leave zone out." if possible else ""
    raise RefusedError(f"{_source(request)} {asked}, {problem}. {_possible_zones(request, region)}{mend}")


def keep(kept: Zone, request: ZoneRequest, region: Region) -> Zone:
    """Return the zone of an existing network.

    Raises:
        RefusedError: the flags ask for another zone, or for an instance type that this one does not offer.
    """
    asked = _asked_for(request, region)
    if asked not in (None, kept):
        problem = f"{_source(request)} {asked}"
    elif lacking := _lacking(kept, request, region):
        problem = f"that zone does not offer {lacking}"
    else:
        return kept
    raise RefusedError(
        f"The network stays in {kept} for good, and {problem}. {_possible_zones(request, region)} "
        f"Nothing was changed. Use instance types and reservations of {kept.id}, or deploy in another "
        'region; or destroy all stacks in order (docs/how-to/operate.md: "Take it down") and deploy again.'
    )


def beside(zone: Zone, region: Region) -> Zone:
    """Choose a second zone: the first available other one; the network's own if the region has no other."""
    return next((each for each in region.zones if each.available and each != zone), zone)


def find(zone: str, region: Region) -> Zone | None:
    """Find a zone by its id or name; None if this account has no such zone in the region."""
    return next((each for each in region.zones if zone in (each.id, each.name)), None)


def _asked_for(request: ZoneRequest, region: Region) -> Zone | None:
    """Return the reservation's zone, else the one that the flag names; None for any."""
    named = None
    if request.zone != AUTO:
        named = find(request.zone, region)
        if named is None:
            raise RefusedError(
                f"zone={request.zone}: {region.name} has no such zone for this account. "
                f"{_possible_zones(request, region)}"
            )
    if not request.reservation_id:
        return named
    place = region.zone_of_reservation(request.reservation_id)
    reserved = find(place, region) if place else None
    if reserved is None:
        problem = f"is in {place}, which is not a zone" if place else "does not exist"
        raise RefusedError(
            f"The reservation {request.reservation_id} {problem} for this account in {region.name}."
        )
    if named not in (None, reserved):
        raise RefusedError(
            f"The reservation {request.reservation_id} is in {reserved}, and zone={request.zone} is {named}. "
            f"Type: -c zone={reserved.id}, or leave zone out."
        )
    return reserved


def _possible(request: ZoneRequest, region: Region) -> list[Zone]:
    return [each for each in region.zones if each.available and not _lacking(each, request, region)]


def _lacking(zone: Zone, request: ZoneRequest, region: Region) -> str:
    return _some([each for each in request.instance_types if zone.id not in region.zone_ids_with(each)])


def _source(request: ZoneRequest) -> str:
    """Return the beginning of a sentence that the requested zone ends."""
    if request.reservation_id:
        return f"the reservation {request.reservation_id} is in"
    return f"zone={request.zone} is"


def _possible_zones(request: ZoneRequest, region: Region) -> str:
    if possible := _possible(request, region):
        return f"Zones that offer all of {_some(request.instance_types)}: {_joined(possible)}."
    zones = {name: sorted(region.zone_ids_with(name)) for name in request.instance_types}
    rarest_first = sorted(zones, key=lambda name: len(zones[name]))
    each = _some([f"{name}: {_joined(zones[name]) or 'none'}" for name in rarest_first], "; ")
    return (
        f"No zone of {region.name} offers all instance types ({each}). Type another family, instance_type "
        "or head_node_type, or deploy in another region: docs/families.md."
    )


def _some(parts: Sequence[str], separator: str = ", ") -> str:
    """Join the first parts, and add the number of the others."""
    more = len(parts) - _MOST_NAMED
    return separator.join([*parts[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _joined(zones: Iterable[Zone | str]) -> str:
    return ", ".join(str(each) for each in zones)
