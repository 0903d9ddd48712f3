"""The deploy's own choice of a zone (assets/compute_zone), so that preflight says the same, in its words."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from ops.asset_code import asset_code


@cache
def zone_code() -> SimpleNamespace:
    """Its modules."""
    return asset_code("compute_zone", "region", "choice")


def zones_of(ec2: Any) -> Any:
    """Its Region, with a client of ours: the one that it makes does not read AWS_REGION."""
    region = object.__new__(zone_code().region.Region)
    region._ec2, region.name, region._offered = ec2, ec2.meta.region_name, {}
    return region
