"""Whether the zone of your own network has the instance types; zone.py asks it of a network of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ops.preflight.finding import Finding, judged
from ops.preflight.place import Place
from training_cluster.flags.settings import Settings


def check_instance_types(settings: Settings, place: Place, ec2: Any) -> Iterator[Finding]:
    """Each type by itself: the head node's stands in the public subnet, which is of the same zone."""
    if not settings.vpc_id or place.zone_id is None:
        return
    wanted, zone = settings.instance_types, place.zone_id
    offered = _offered(wanted, ec2)
    whole = sorted(each for each, types in offered.items() if types == set(wanted))
    listed, region = ", ".join(whole) or "none", ec2.meta.region_name
    for type_ in wanted:
        where = sorted(each for each, types in offered.items() if type_ in types)
        is_here = zone in where
        yield judged(
            f"{type_} in {zone}",
            "offered" if is_here else f"not offered; in {', '.join(where) or f'no zone of {region}'}",
            good=is_here,
            mend=f"subnets in a zone that has all types: {listed}",
        )


def _offered(types: list[str], ec2: Any) -> dict[str, set[str]]:
    """Id of a zone -> those of the types that it offers."""
    found: dict[str, set[str]] = {}
    pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone-id", Filters=[{"Name": "instance-type", "Values": types}]
    )
    for page in pages:
        for each in page["InstanceTypeOfferings"]:
            found.setdefault(each["Location"], set()).add(each["InstanceType"])
    return found
