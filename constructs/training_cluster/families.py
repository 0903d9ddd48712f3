"""The catalog of instance families: reads cluster_configs/, knows no hardware fact itself."""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from training_cluster.problems import ConfigurationError, did_you_mean

CATALOG = Path(__file__).resolve().parents[2] / "cluster_configs"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Accelerator(_Strict):
    """What a node computes with; `none` for CPU families."""

    kind: Literal["gpu", "neuron", "none"]
    name: str
    count: int = Field(ge=0, description="accelerators a node")


class EnvironmentVariable(_Strict):
    """One variable of a job's environment, with the reason it is set."""

    name: str = Field(pattern=r"^[A-Z][A-Z0-9_]*$")
    value: str
    reason: str


class Family(_Strict):
    """One instance family: the facts of one YAML file of the catalog."""

    name: str
    instance_type: str = Field(description="the family's main size")
    queue: str = Field(pattern=r"^[a-z][a-z0-9-]{0,24}$", description="name of its Slurm partition")
    accelerator: Accelerator
    vcpus: int = Field(gt=0)
    memory_gib: int = Field(gt=0)
    network_cards: int = Field(gt=0, description="each takes one private address a node")
    efa_interfaces: int = Field(ge=0)
    mixed_precision: Literal["bf16", "fp16", "no"]
    head_node_type: str
    price_usd_per_hour: float = Field(gt=0, description="on demand, us-east-1, one node")
    price_date: datetime.date
    job_environment: tuple[EnvironmentVariable, ...]

    @property
    def efa(self) -> bool:
        """Whether its nodes talk over EFA."""
        return self.efa_interfaces > 0


class HeadNode(_Strict):
    """Constants of the head node: none of them can change in a cluster's life."""

    root_volume_gib: int
    bootstrap_timeout_s: int


class ComputeNode(_Strict):
    """Defaults of compute nodes."""

    root_volume_gib: int
    bootstrap_timeout_s: int


class Base(_Strict):
    """cluster_configs/base.yaml: what every cluster shares."""

    head_node: HeadNode
    compute_node: ComputeNode
    scaledown_idle_min: int
    log_retention_days: int
    shared_dir: str


def _read(path: Path) -> dict[str, Any]:
    try:
        loaded = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path.name}: not valid YAML: {error}") from None
    if not isinstance(loaded, dict):
        raise ConfigurationError(f"{path.name}: expected keys and values, found {type(loaded).__name__}")
    return loaded


def _explain(path: Path, model: type[BaseModel], error: ValidationError) -> ConfigurationError:
    lines = [f"{path.name}: {error.error_count()} problem(s) in this catalog file"]
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        hint = ""
        if problem["type"] == "extra_forbidden":
            hint = did_you_mean(str(problem["loc"][-1]), model.model_fields)
        lines.append(f"  {key}: {problem['msg']}.{hint}")
    return ConfigurationError("\n".join(lines))


def family_names(catalog: Path = CATALOG) -> tuple[str, ...]:
    """The names of all families, sorted: one YAML file each, base.yaml apart."""
    return tuple(sorted(path.stem for path in catalog.glob("*.yaml") if path.stem != "base"))


@cache
def load_family(name: str, catalog: Path = CATALOG) -> Family:
    """Read one family.

    Raises:
        ConfigurationError: no such file, or a key that is missing, unknown or of another type.
    """
    names = family_names(catalog)
    if name not in names:
        raise ConfigurationError(
            f'"{name}" is no instance family.{did_you_mean(name, names)} Allowed: {", ".join(names)}'
        )
    path = catalog / f"{name}.yaml"
    try:
        return Family(name=name, **_read(path))
    except ValidationError as error:
        raise _explain(path, Family, error) from None


@cache
def load_base(catalog: Path = CATALOG) -> Base:
    """Read base.yaml.

    Raises:
        ConfigurationError: a key that is missing, unknown or of another type.
    """
    path = catalog / "base.yaml"
    try:
        return Base(**_read(path))
    except ValidationError as error:
        raise _explain(path, Base, error) from None
