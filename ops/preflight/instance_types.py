"""Whether the zone has the instance types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ops.preflight.finding import Finding, judged
from ops.preflight.place import Place
from training_cluster.settings import Settings


def check_instance_types(settings: Settings, place: Place, ec2: Any) -> Iterator[Finding]:
    """Of the zone that was chosen or that the network has; else whether any zone of the region has all."""
    wanted, zone = settings.instance_types, place.zone_id
    kind = "availability-zone-id"
    if zone is None and settings.zone != "auto":
        zone = settings.zone
        kind = "availability-zone-id" if "-az" in zone else "availability-zone"
    offered = _offered(wanted, kind, ec2)
    whole = sorted(each for each, types in offered.items() if types == set(wanted))
    listed, region = ", ".join(whole) or "none", ec2.meta.region_name
    if zone is None:
        yield judged(
            f"zones of {region} with {', '.join(wanted)}",
            listed,
            good=bool(whole),
            mend="another region (export AWS_REGION=...) or -c family=...: docs/families.md lists zones",
        )
        return
    for type_ in wanted:
        where = sorted(each for each, types in offered.items() if type_ in types)
        is_here = zone in where
        flag = "subnets" if settings.vpc_id else "-c zone=..."
        yield judged(
            f"{type_} in {zone}",
            "offered" if is_here else f"not offered; in {', '.join(where) or f'no zone of {region}'}",
            good=is_here,
            mend=f"{flag} in a zone that has all types: {listed}",
        )


def _offered(types: list[str], kind: str, ec2: Any) -> dict[str, set[str]]:
    """Zone -> those of the types that it offers."""
    found: dict[str, set[str]] = {}
    pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
        LocationType=kind, Filters=[{"Name": "instance-type", "Values": types}]
    )
    for page in pages:
        for each in page["InstanceTypeOfferings"]:
            found.setdefault(each["Location"], set()).add(each["InstanceType"])
    return found
