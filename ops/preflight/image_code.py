"""The deploy's own check of images (assets/cluster_image), so that preflight says the same, in its words."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CODE = Path(__file__).resolve().parents[2] / "assets" / "cluster_image"
ARCHITECTURE = "x86_64"
"""Of every family; as cluster_image.py has it, which wants all of CDK (compared in a test)."""
_MODULES = ("wish", "region", "own", "official")


@cache
def image_code() -> SimpleNamespace:
    """Its modules, by the plain names that they have in the function; no trace of these is left here."""
    former = {name: sys.modules.pop(name) for name in _MODULES if name in sys.modules}
    sys.path.insert(0, str(CODE))
    try:
        return SimpleNamespace(**{name: import_module(name) for name in _MODULES})
    finally:
        sys.path.remove(str(CODE))
        for name in _MODULES:
            sys.modules.pop(name, None)
        sys.modules.update(former)


def region_of(ec2: Any) -> Any:
    """Its Region, with a client of ours: the one that it makes does not read AWS_REGION."""
    region = object.__new__(image_code().region.Region)
    region._ec2, region.name = ec2, ec2.meta.region_name
    return region
