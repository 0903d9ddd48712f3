"""The choice of the network's zone; a refusal lists the possible zones and the flags to type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from region import Region, Zone

AUTO = "auto"
# A custom resource's answer is 4096 bytes at most, and queues may have many instance types.
_MOST_NAMED = 5
POOL = (
    "aws resource-groups create-group --name NAME --configuration Type=AWS::EC2::CapacityReservationPool "
    "'Type=AWS::ResourceGroups::Generic,"
    "Parameters=[{Name=allowed-resource-types,Values=AWS::EC2::CapacityReservation}]'"
)
"""Command that makes a resource group into which instances launch (EC2's guide, "Create a group")."""


class RefusedError(Exception):
    """The flags ask for an impossible zone; the text is for people."""


@dataclass(frozen=True, kw_only=True)
class ZoneRequest:
    """Needs of a cluster that its zone has to meet."""

    zone: str
    """`auto`, a zone's name or its id."""
    instance_types: tuple[str, ...]
    """Instance types of the cluster, all of which the zone must offer."""
    reservations: tuple[Mapping[str, Any], ...]
    """Capacity reservations (cr-...) and resource groups of them (ARN): Id, Types, and Queue that uses it."""


def read_request(properties: Mapping[str, Any]) -> ZoneRequest:
    """Read the input of the custom resource."""
    return ZoneRequest(
        zone=properties["Zone"],
        instance_types=tuple(properties["InstanceTypes"]),
        reservations=tuple(properties.get("Reservations", ())),  # older releases had none
    )


def choose(request: ZoneRequest, region: Region) -> Zone:
    """Choose the zone of a new network: the first possible one by id that flag and reservations allow.

    Raises:
        RefusedError: flag and reservations contradict each other, or no such zone offers every instance type.
    """
    limits = list(_limits(request, region))
    allowed = [zone for zone in region.zones if all(zone in zones for _, zones in limits)]
    possible, sources = _possible(request, region), _some([source for source, _ in limits], "; ")
    if chosen := next((zone for zone in allowed if zone in possible), None):
        return chosen
    if not limits:
        raise RefusedError(_possible_zones(request, region))
    if not allowed:
        raise RefusedError(f"No zone suits all: {sources}. {_agreement(request, limits)}")
    lacking = _lacking(allowed[0], request, region)
    problem = f"which does not offer {lacking}" if lacking else "which is not available now"
    if request.reservations:
        mend = " Type other instance types, or another reservation."
    else:
        mend = f" Type: -c zone={possible[0].id}, or leave zone out." if possible else ""
    raise RefusedError(f"{sources}, {problem}. {_possible_zones(request, region)}{mend}")


def keep(kept: Zone, request: ZoneRequest, region: Region) -> Zone:
    """Return the zone of an existing network.

    Raises:
        RefusedError: the flags ask for another zone, or for an instance type that this one does not offer.
    """
    elsewhere = [source for source, zones in _limits(request, region) if kept not in zones]
    if elsewhere:
        problem = _some(elsewhere, "; ")
    elif lacking := _lacking(kept, request, region):
        problem = f"that zone does not offer {lacking}"
    else:
        return kept
    raise RefusedError(
        f"The network stays in {kept} for good, and {problem}. {_possible_zones(request, region)} Nothing "
        f"was changed. Use instance types and reservations of {kept.id}; or give their queue subnets "
        'there (docs/queues.md, "Queues in other zones"); or deploy in another region; or move the network '
        '(docs/how-to/operate.md, "Move to another network").'
    )


def suitable(request: ZoneRequest, region: Region) -> list[Zone]:
    """Return the zones that a new network could have, by id, whatever the flag says."""
    limits = [zones for _, zones in _limits(replace(request, zone=AUTO), region)]
    return [each for each in _possible(request, region) if all(each in zones for zones in limits)]


def beside(zone: Zone, region: Region) -> Zone:
    """Choose the database's second zone: the first available other one, if possible with databases.

    The network's own if the region has no other.
    """
    others = [each for each in region.zones if each.available and each != zone]
    with_databases = [each for each in others if each.name in region.zone_names_with_databases]
    return next(iter([*with_databases, *others]), zone)


def find(zone: str, region: Region) -> Zone | None:
    """Find a zone by its id or name; None if this account has no such zone in the region."""
    return next((each for each in region.zones if zone in (each.id, each.name)), None)


def _limits(request: ZoneRequest, region: Region) -> Iterator[tuple[str, list[Zone]]]:
    """Yield the beginning of a sentence and its zones, for the flag and each reservation.

    Raises:
        RefusedError: no such zone, or no such reservation.
    """
    if request.zone != AUTO:
        named = find(request.zone, region)
        if named is None:
            raise RefusedError(
                f"zone={request.zone}: {region.name} has no such zone for this account. "
                f"{_possible_zones(request, region)}"
            )
        yield f"zone={request.zone} is {named}", [named]
    for each in request.reservations:
        places = region.zones_of_reservation(each["Id"], each["Types"])
        kind = "group" if each["Id"].startswith("arn:") else "reservation"
        what = f"the {kind} {each['Id']} of queue {each['Queue']}"
        zones = [zone for place in places or () if (zone := find(place, region))]
        if not zones:
            problem = f"is in {_joined(places)}, which is not a zone" if places else "does not exist"
            if places == []:
                problem = f"has no reservation of {_some(each['Types'])}"
            raise RefusedError(f"{what[0].upper()}{what[1:]} {problem} for this account in {region.name}.")
        if not region.launches_into(each["Id"]):
            raise RefusedError(
                f"Instances cannot launch into {what}. Another one: {POOL}, and its "
                "reservations by aws resource-groups group-resources"
            )
        yield f"{what} is in {_joined(zones)}", zones


def _agreement(request: ZoneRequest, limits: Sequence[tuple[str, list[Zone]]]) -> str:
    """Return what to type where the flag and the reservations have no common zone."""
    reserved = [zones for _, zones in limits[request.zone != AUTO :]]
    if common := [zone for zone in reserved[0] if all(zone in zones for zones in reserved)]:
        return f"Type: -c zone={common[0].id}, or leave zone out."
    return (
        "Deploy without one of these queues first, then give that queue a subnet of its own "
        '(docs/queues.md, "Queues in other zones").'
    )


def _possible(request: ZoneRequest, region: Region) -> list[Zone]:
    return [each for each in region.zones if each.available and not _lacking(each, request, region)]


def _lacking(zone: Zone, request: ZoneRequest, region: Region) -> str:
    return _some([each for each in request.instance_types if zone.id not in region.zone_ids_with(each)])


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
