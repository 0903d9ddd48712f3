"""The deploy's own check of images (assets/cluster_image), so that preflight says the same, in its words."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from ops.asset_code import asset_code

ARCHITECTURE = "x86_64"
"""Of every family; as image/lookup.py has it, which wants all of CDK (compared in a test)."""


@cache
def image_code() -> SimpleNamespace:
    """Its modules."""
    return asset_code("cluster_image", "wish", "region", "own", "official")


def region_of(ec2: Any) -> Any:
    """Its Region, with a client of ours: the one that it makes does not read AWS_REGION."""
    region = object.__new__(image_code().region.Region)
    region._ec2, region.name = ec2, ec2.meta.region_name
    return region
