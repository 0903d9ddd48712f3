"""Samples of cluster configs that `trainctl import` translates: imports.yaml."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training_cluster.catalog.yaml_file import read_yaml

Config = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A cluster config, and the keys that its import loses."""

    config: Config
    lost: tuple[str, ...]


def import_samples() -> dict[str, Sample]:
    """Return all samples by name; `plain` is the one that the others change."""
    content = read_yaml(Path(__file__).with_name("imports.yaml"))
    plain: Config = content["plain"]
    samples = {"plain": Sample(config=plain, lost=())}
    for name, entry in content["samples"].items():
        lost = tuple(entry.pop("lost", ()))
        samples[name] = Sample(config=_patched(plain, entry), lost=lost)
    return samples


def _patched(config: Config, patch: Mapping[str, Any]) -> Config:
    """Return a config with the value at each path; a list's items have numbers, and null removes a key."""
    patched: Any = deepcopy(config)
    for path, value in patch.items():
        *above, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place = patched
        for part in above:
            place = place[part]
        if value is None:
            del place[last]
        elif isinstance(place, list) and last == len(place):
            place.append(value)
        else:
            place[last] = value
    return dict(patched)
