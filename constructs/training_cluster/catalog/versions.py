"""Pinned versions of all installed software: cluster_configs/versions.yaml, rendered for shell scripts."""

from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from training_cluster.catalog.families import CATALOG, family_names, load_family, validated
from training_cluster.catalog.family import Strict
from training_cluster.catalog.yaml_file import read_yaml

Recipe = Literal["gpu", "volta", "neuron", "cpu"]
FILE = CATALOG / "versions.yaml"
# What a shell script may quote in '...', without a space of its own.
_WORD = r"^[^'\s]+$"


class Pin(Strict):
    """One pinned piece of software: version, source, and the reason for this version."""

    version: str = Field(pattern=_WORD)
    url: str | None = Field(None, pattern=r"^https://[^'\s]+$")
    index: str | None = Field(
        None, pattern=r"^https://[^'\s]+$", description="pip's index that has this build"
    )
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    commit: str | None = Field(None, pattern=r"^[0-9a-f]{40}$", description="of the repository at url")
    fingerprint: str | None = Field(None, pattern=r"^[0-9A-F]{40}$", description="of the signing key at url")
    recipes: tuple[Recipe, ...] = Field(min_length=1)
    source: str = Field(alias="from")
    newest: str | None = None
    why: str
    ceiling: str | None = Field(None, description="no version after it; a prefix of the newest allowed one")
    confirmed: bool
    lookup: str | None = Field(
        None, pattern=r"^(pypi:[A-Za-z0-9._-]+|github:[A-Za-z0-9._-]+/[A-Za-z0-9._-]+)$"
    )

    @model_validator(mode="after")
    def _honest(self) -> Self:
        if self.ceiling and not under(self.version, self.ceiling):
            raise ValueError(f"version {self.version} is after its ceiling {self.ceiling}")
        if self.confirmed and self.url and not (self.sha256 or self.commit or self.fingerprint):
            raise ValueError(
                "a url that nothing verifies: add sha256, commit or fingerprint, or `confirmed: no`"
            )
        return self


class Versions(Strict):
    """Pins of cluster_configs/versions.yaml, by name."""

    pins: dict[str, Pin]

    def of_recipe(self, recipe: str) -> dict[str, Pin]:
        """Return the pins of the software in an image of this recipe."""
        return {name: pin for name, pin in self.pins.items() if recipe in pin.recipes}


def under(version: str, ceiling: str) -> bool:
    """Return True if a version is not after a ceiling; 580 allows 580.159.04 and 570.1, not 590."""
    parts = ceiling.split(".")
    return _key(version.split(".")[: len(parts)]) <= _key(parts)


def _key(parts: list[str]) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


@cache
def load_versions(file: Path = FILE) -> Versions:
    """Read the pins of all software.

    Raises:
        ConfigurationError: a key that is missing, unknown or of another type; a pin that contradicts itself.
    """
    keys = [field.alias or name for model in (Pin, Versions) for name, field in model.model_fields.items()]
    return validated(Versions, file, read_yaml(file), keys)


def render_versions(versions: Versions | None = None) -> str:
    """Render versions.env, which every install step reads: one `export NAME='value'` a line.

    An unknown checksum is exported empty: a step then reports what it lacks, instead of ending on `set -u`.
    """
    versions = versions or load_versions()
    values: dict[str, str] = {}
    for name, pin in versions.pins.items():
        values[f"{name}_version"] = pin.version
        if pin.url:
            values[f"{name}_url"] = pin.url
        if pin.index:
            values[f"{name}_index"] = pin.index
        if pin.commit:
            values[f"{name}_commit"] = pin.commit
        elif pin.fingerprint:
            values[f"{name}_fingerprint"] = pin.fingerprint
        elif pin.sha256 or pin.url:
            values[f"{name}_sha256"] = pin.sha256 or ""
    for recipe in ("gpu", "volta"):
        values[f"cuda_capabilities_{recipe}"] = " ".join(capabilities(recipe))
    return "".join(f"export {name.upper()}='{value}'\n" for name, value in values.items())


def capabilities(recipe: str) -> list[str]:
    """Return the compute capabilities that a recipe's image compiles for, lowest first."""
    families = [load_family(name) for name in family_names()]
    found = {each.accelerator.compute_capability for each in families if each.image_recipe == recipe}
    return sorted(filter(None, found), key=float)
