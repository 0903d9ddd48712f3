"""Reader of the catalog of instance families, cluster_configs/. It holds no hardware fact itself."""

import datetime
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from training_cluster.catalog.family import (
    INSTANCE_TYPE,
    QUEUE_NAME,
    Accelerator,
    EnvironmentVariable,
    Family,
    ImageRecipe,
    NcclFloor,
    Size,
    Strict,
)
from training_cluster.catalog.instance_types import (
    add_ec2_facts,
    ec2_size,
    family_of_type,
    make_family,
    other_families,
    other_size,
)
from training_cluster.catalog.prices import Price, Prices
from training_cluster.catalog.quotas import Quota, Quotas, VcpuQuota
from training_cluster.catalog.yaml_file import read_yaml
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError, did_you_mean

CATALOG = ROOT / "cluster_configs"
NO_FAMILIES = ("base", "gpus", "prices", "quotas", "versions")
_Model = TypeVar("_Model", bound=Strict)


class HeadNodeSize(Strict):
    """A type that is offered as head node."""

    vcpus: int
    memory_gib: int
    usd_per_hour: float | None = Field(description="on demand, us-east-1")


class HeadNode(Strict):
    """Settings of every head node. None of them can change during a cluster's life."""

    bootstrap_timeout_s: int
    nodes_per_vcpu: int = Field(description="most compute nodes that one vCPU of the head node serves well")
    types: dict[str, HeadNodeSize] = Field(description="smallest first")
    price_date: datetime.date = Field(description="of the types' usd_per_hour")


class ComputeNode(Strict):
    """Time limits of every compute node's start."""

    boot_s: int = Field(description="ParallelCluster's own part of a node's start")
    most_install_s: int = Field(gt=0, description="most that a new node may take to install, beyond its boot")


class CpuQueue(Strict):
    """The queue for data preparation, in addition to accelerators."""

    name: str = Field(pattern=QUEUE_NAME)
    instance_type: str = Field(pattern=INSTANCE_TYPE)
    arm_instance_type: str = Field(pattern=INSTANCE_TYPE, description="with nodes with Arm processors")
    nodes: int = Field(gt=0)
    root_gib: int = Field(gt=0)


class LoginNode(Strict):
    """Settings of every login node."""

    instance_type: str = Field(pattern=INSTANCE_TYPE)
    arm_instance_type: str = Field(pattern=INSTANCE_TYPE, description="with nodes that have Arm processors")
    grace_min: int = Field(ge=3, le=120, description="minutes that people have when a login node goes")


class LustreEfa(Strict):
    """Limits of EFA between nodes and Lustre."""

    without: tuple[str, ...] = Field(description="families with EFA that reach Lustre over TCP only")
    most_connections: int = Field(gt=0, description="of all clients to one file system; one an interface")
    most_interfaces: int = Field(gt=0, description="of one node")


class AccountingDatabase(Strict):
    """Smallest and largest size of Slurm's accounting database, in Aurora capacity units."""

    min_acu: float = Field(gt=0)
    max_acu: float = Field(gt=0)


class Base(Strict):
    """Settings that every cluster shares: cluster_configs/base.yaml, with prices.yaml and quotas.yaml."""

    head_node: HeadNode
    compute_node: ComputeNode
    efa_environment: tuple[EnvironmentVariable, ...]
    cpu_queue: CpuQueue
    login_node: LoginNode
    image_recipes: dict[str, ImageRecipe]
    scaledown_idle_min: int
    kill_wait_s: int = Field(ge=30, le=65533)
    log_retention_days: int
    shared_dir: str
    efs_dir: str
    links: dict[str, str]
    lustre_efa: LustreEfa
    accounting_database: AccountingDatabase
    prices: Prices
    quotas: Quotas
    sources: dict[str, str]

    def source(self, family: Family, fact: str) -> str:
        """Return the source of a fact about a family: its own, or the usual one of that fact."""
        return family.sources.get(fact) or self.sources[fact]


def _read(path: Path) -> dict[str, Any]:
    loaded = read_yaml(path)
    if not isinstance(loaded, dict):
        raise ConfigurationError(f"{path.name}: expected keys and values, found {type(loaded).__name__}")
    return loaded


def _facts(path: Path) -> dict[str, Any]:
    loaded = _read(path)
    if "name" in loaded:
        raise ConfigurationError(f"{path.name}: name: the name of the file is the family's; remove this key")
    return loaded


_MODELS = (
    *(Accelerator, Size, EnvironmentVariable, NcclFloor, Family),
    *(HeadNode, HeadNodeSize, ComputeNode, CpuQueue, LoginNode, ImageRecipe),
    *(LustreEfa, AccountingDatabase, Price, Prices, Quota, VcpuQuota, Quotas, Base),
)
_KEYS = sorted({field.alias or name for model in _MODELS for name, field in model.model_fields.items()})


def _explain(path: Path, error: ValidationError, keys: Iterable[str]) -> ConfigurationError:
    lines = [f"{path.name}: {error.error_count()} problem(s) in this catalog file"]
    for problem in error.errors():
        place = problem["loc"]
        if problem["type"] == "invalid_key":
            place = (*place[:-1], problem["input"])  # as it was written: 7, 2026-01-01
        key = ".".join(str(part) for part in place)
        hint = did_you_mean(str(problem["loc"][-1]), keys) if problem["type"] == "extra_forbidden" else ""
        said = problem["msg"].removeprefix("Value error, ")
        lines.append(f"  {key}: {said}.{hint}" if key else f"  {said}")
    return ConfigurationError("\n".join(lines))


@cache
def family_names(catalog: Path = CATALOG) -> tuple[str, ...]:
    """Return the names of all families, sorted: each YAML file is one, except NO_FAMILIES."""
    return tuple(sorted(path.stem for path in catalog.glob("*.yaml") if path.stem not in NO_FAMILIES))


def validated(model: type[_Model], path: Path, loaded: Any, keys: Iterable[str] = _KEYS) -> _Model:
    """Return what a catalog file holds as a model.

    Args:
        keys: known keys, for those that are unknown.

    Raises:
        ConfigurationError: a key that is missing, unknown or of another type.
    """
    try:
        return model.model_validate(loaded)
    except ValidationError as error:
        raise _explain(path, error, keys) from None


@cache
def load_family(name: str, catalog: Path = CATALOG) -> Family:
    """Read the file of one family; make a family without a file of EC2's facts alone.

    Raises:
        ConfigurationError: EC2 has no such family, or a key is missing, unknown or of another type.
    """
    names = family_names(catalog)
    if name not in names:
        if other := make_family(name):
            return other
        hint = did_you_mean(name, (*names, *other_families()))
        raise ConfigurationError(f'"{name}" is not an instance family.{hint} Allowed: {", ".join(names)}')
    path = catalog / f"{name}.yaml"
    return validated(Family, path, add_ec2_facts({**_facts(path), "name": name}))


def _add_ec2_sizes(base: dict[str, Any]) -> None:
    """Add EC2's facts to the types of head nodes; what is not of the expected form is left to the model."""
    head_node = base.get("head_node")
    types = head_node.get("types") if isinstance(head_node, dict) else None
    if isinstance(types, dict):
        for type_, size in types.items():
            if isinstance(size, dict):
                types[type_] = {**ec2_size(type_), **size}


@cache
def load_base(catalog: Path = CATALOG) -> Base:
    """Read the settings that every cluster shares (base.yaml, prices.yaml, quotas.yaml).

    Raises:
        ConfigurationError: a key that is missing, unknown or of another type.
    """
    prices, quotas = catalog / "prices.yaml", catalog / "quotas.yaml"
    parts = {
        "prices": validated(Prices, prices, _read(prices)),
        "quotas": validated(Quotas, quotas, _read(quotas)),
    }
    path = catalog / "base.yaml"
    loaded = _read(path)
    _add_ec2_sizes(loaded)
    for key in parts.keys() & loaded.keys():
        raise ConfigurationError(f"{path.name}: {key}: has a file of its own, {key}.yaml; remove this key")
    return validated(Base, path, {**loaded, **parts})


def find_instance_type(instance_type: str, catalog: Path = CATALOG) -> tuple[Family, Size] | None:
    """Find the family and the facts of an instance type; None when EC2 does not have it."""
    name = family_of_type(instance_type)
    family = load_family(name, catalog) if name in family_names(catalog) else make_family(name)
    if family and instance_type in family.sizes:
        return family, family.sizes[instance_type]
    if family and (size := other_size(instance_type)):
        return family.model_copy(update={"sizes": {**family.sizes, instance_type: size}}), size
    return None


def head_node_size(instance_type: str) -> HeadNodeSize | None:
    """Find the facts of a head node's type; None when neither base.yaml nor a family has it."""
    if offered := load_base().head_node.types.get(instance_type):
        return offered
    found = find_instance_type(instance_type)
    if found is None:
        return None
    size = found[1]
    return HeadNodeSize(vcpus=size.vcpus, memory_gib=size.memory_gib, usd_per_hour=size.usd_per_hour)


def instance_hour(instance_type: str) -> Price | None:
    """Return the on-demand price of an hour of an instance; None when the catalog has none."""
    base = load_base()
    if offered := base.head_node.types.get(instance_type):
        usd, date, source = offered.usd_per_hour, base.head_node.price_date, base.sources["usd_per_hour"]
    elif found := find_instance_type(instance_type):
        family, size = found
        usd, date, source = size.usd_per_hour, family.price_date, base.source(family, "usd_per_hour")
    else:
        return None
    return None if usd is None else Price(usd=usd, date=date, source=source)
