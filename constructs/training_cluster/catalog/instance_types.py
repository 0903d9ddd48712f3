"""EC2's facts of instance types: facts of the families' files, and of families that have no file.

The facts are EC2's own (instance_types.tsv, written by tools/instance_types.py). Everything else about a
family without a file is a default: no job environment, no judged bandwidth, no price.
"""

import csv
import datetime
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from training_cluster.catalog.family import (
    UNCONFIRMED,
    Accelerator,
    Architecture,
    CapacityType,
    Family,
    Size,
    Strict,
)
from training_cluster.catalog.yaml_file import read_yaml
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError

TABLE = ROOT / "cluster_configs" / "instance_types.tsv"
ZONES = ROOT / "cluster_configs" / "zones.tsv"
GPUS = ROOT / "cluster_configs" / "gpus.yaml"


class Row(Strict):
    """EC2's facts of one instance type; memory in GiB, disks in GB, network in Gbit/s."""

    type: str
    architecture: Architecture
    vcpus: int
    threads_per_core: int
    memory_gib: int
    network_cards: int
    network_gbps: float
    efa_interfaces: int
    nvme_gb: int
    capacity: str
    accelerator: str
    accelerators: int
    accelerator_memory_gib: float
    accelerator_cores: int


COLUMNS = tuple(Row.model_fields)

_BF16_SINCE = 8.0
# CUDA 13 in PyTorch's pull requests 182849 and 197555; its wheels for x86_64 begin with 7.5.
_OLD_ARM_GPU = (
    ". torch's wheels for arm64 have no code for its GPUs, only from compute capability 8.0 on: run the "
    "workloads in a container whose torch has it"
)
_RECIPES = {"gpu": "gpu", "neuron": "neuron", "none": "cpu"}
"""Image recipe of nodes, by the kind of their accelerators."""
# Inferentia's first generation has no software to train with.
_TRAINS = re.compile(r"AWS (Trainium\d*|Inferentia2)")


_ULTRASERVERS: Mapping[str, str] = {
    # ULTRASERVER_CAPACITY_BLOCK_ALLOWED_SIZE_DICT of ParallelCluster; pull request 3017 of its cookbook and
    # AWS PCS's guide ("Configure UltraServer instances") leave IMEX to a prolog.
    "p6e-gb200": "missing are (1) the type in EC2's table here and in the local AWS, so that nothing can be "
    "checked before a deploy; (2) a prolog that gives NVIDIA's IMEX the nodes of each job, whose GPUs it "
    "joins; (3) image=build for arm64. ParallelCluster takes them in Capacity Blocks of 9 or 18 nodes, and "
    "the workloads' packages are locked for arm64, too",
    **dict.fromkeys(
        ("p6e-gb300", "trn2u"),
        "this version of ParallelCluster does not know them (its UltraServers are p6e-gb200)",
    ),
}


def refused_family(name: str) -> str | None:
    """Return why nodes of a family of EC2's are refused; None for a family that is not."""
    reason = _ULTRASERVERS.get(name)
    return f"UltraServers {name} are refused: {reason}" if reason else None


def family_of_type(instance_type: str) -> str:
    """Return the name of a type's family: all before the dot."""
    return instance_type.partition(".")[0]


@cache
def _lines() -> dict[str, list[dict[str, str]]]:
    """Read the table: lines by family."""
    found: dict[str, list[dict[str, str]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for line in csv.DictReader(lines, delimiter="\t"):
            found.setdefault(family_of_type(line["type"]), []).append(line)
    return found


@cache
def _zones() -> dict[str, dict[str, list[str]]]:
    """Read the zones that offer a type, by region; the table has no types that are in most zones."""
    lines = (line.split("\t") for line in ZONES.read_text(encoding="utf-8").splitlines() if line[0] != "#")
    return {
        type_: {region: zones.split(",") for region, zones in (each.split(":") for each in words.split())}
        for type_, words in lines
    }


@cache
def _rows(family: str) -> dict[str, Row]:
    """Return a family's rows by type; none if the table lacks it."""
    return {line["type"]: Row.model_validate(line) for line in _lines().get(family, ())}


def table_source(table: Path = TABLE) -> str:
    """Return the source of the table's facts: its first line."""
    with table.open(encoding="utf-8") as file:
        return file.readline().removeprefix("# ").partition(". ")[0]


def other_families() -> tuple[str, ...]:
    """Return the names of EC2's families, sorted; the catalog has files of some of them."""
    return tuple(sorted(_lines()))


@cache
def make_family(name: str) -> Family | None:
    """Make a family of EC2's facts; None if EC2 has no such family."""
    rows = _rows(name)
    if not rows:
        return None
    largest = max(rows.values(), key=lambda row: ("metal" not in row.type, row.accelerators, row.vcpus))
    accelerator, precision = _accelerator(largest)
    sizes = {type_: _size(row, has_accelerators=accelerator.kind != "none") for type_, row in rows.items()}
    is_arm = largest.architecture == "arm64"
    old = _OLD_ARM_GPU if is_arm and precision == "fp16" else ""
    unknown = ["sockets", "cores_per_socket", "usd_per_hour"]
    unknown += ["accelerator.peak_bf16_tflops"] if accelerator.kind != "none" else []
    family = {
        "name": name,
        "main_size": largest.type,
        "queue": {"gpu": "gpu", "neuron": "trn", "none": "cpu"}[accelerator.kind],
        "accelerator": accelerator,
        "mixed_precision": precision,
        "notice": f"cluster_configs/ has no file of it: the facts are EC2's ({table_source()}), jobs get no "
        f"settings of its own, and its price is unknown{old}",
        "architecture": largest.architecture,
        "image_recipe": _RECIPES[accelerator.kind],
        "capacity": _capacity(rows.values()),
        "pcluster_min_version": "3.0.0",
        "head_node_type": "m6g.xlarge" if is_arm else "m6i.xlarge",
        "head_root_gib": 128,
        "compute_root_gib": 128,
        "sizes": sizes,
        "slurm_topology": None,
        "price_date": datetime.date.min,
        "job_environment": (),
        "nccl_floors": (),
        "sources": dict.fromkeys(unknown, UNCONFIRMED),
    }
    return Family.model_validate(family)


def add_ec2_facts(loaded: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a family's file has, with EC2's facts of its sizes, and the rest by its main size.

    A fact in the file replaces EC2's, with its source. What is not of the expected form is left to the model.

    Raises:
        ConfigurationError: a fact in the file replaces EC2's without a source.
    """
    zones = _zones().get(str(loaded.get("main_size")), {})
    family: dict[str, Any] = {"zones": zones, **loaded}
    sizes, rows = loaded.get("sizes"), _rows(str(loaded.get("name")))
    if not rows or not isinstance(sizes, Mapping):
        return family
    main, sources = rows.get(str(loaded.get("main_size"))), loaded.get("sources")
    accelerator, precision = _accelerator(main or next(iter(rows.values())))
    recipe = _RECIPES[accelerator.kind]
    family = {"mixed_precision": precision, "image_recipe": recipe, "queue": recipe, **family}
    if isinstance(given := loaded.get("accelerator"), Mapping):
        family["accelerator"] = {**accelerator.model_dump(), **given}
    sourced = set(sources) if isinstance(sources, Mapping) else set()
    family.setdefault("capacity", _capacity([main] if main else rows.values()))
    family["sizes"] = {**sizes}
    for type_, size in sizes.items():
        if type_ in rows and isinstance(size, Mapping):
            facts = _facts(rows[type_], has_accelerators=bool(rows[type_].accelerators))
            if unsourced := sorted(facts.keys() & size.keys() - sourced):
                raise ConfigurationError(
                    f"{loaded['name']}.yaml: sizes.{type_}.{unsourced[0]}: {TABLE.name} has this fact\n"
                    f"  remove it here, or add to sources: {unsourced[0]}: why EC2's is wrong"
                )
            if "capacity" in loaded or facts["capacity"] == family["capacity"]:
                del facts["capacity"]
            family["sizes"][type_] = {**facts, **size}
    return family


def ec2_size(instance_type: str) -> Mapping[str, int]:
    """Return vCPUs and GiB of a type; none if the table lacks it."""
    row = _rows(family_of_type(instance_type)).get(instance_type)
    return {"vcpus": row.vcpus, "memory_gib": row.memory_gib} if row else {}


def other_size(instance_type: str) -> Size | None:
    """Return EC2's facts of a type that its family's file lacks; None if EC2 has no such type."""
    row = _rows(family_of_type(instance_type)).get(instance_type)
    if row is None:
        return None
    return _size(row, has_accelerators=_accelerator(row)[0].kind != "none")


def _accelerator(row: Row) -> tuple[Accelerator, str]:
    """Return the accelerator of a type and the mixed precision that it computes fast."""
    name = row.accelerator
    gpus = read_yaml(GPUS)
    kind, capability = "none", None
    if name in gpus:
        kind, capability = "gpu", str(gpus[name])
    elif _TRAINS.fullmatch(name):
        kind = "neuron"
    precision = "no" if kind == "none" else "bf16"
    if capability and float(capability) < _BF16_SINCE:
        precision = "fp16"
    trains = kind != "none"
    return Accelerator.model_validate(
        {
            "kind": kind,
            "name": name or "no accelerator",
            "memory_gib": row.accelerator_memory_gib if trains else 0,
            "cores": row.accelerator_cores if trains else 0,
            "compute_capability": capability,
            "peak_bf16_tflops": None,
        }
    ), precision


def _size(row: Row, *, has_accelerators: bool) -> Size:
    return Size.model_validate(_facts(row, has_accelerators=has_accelerators))


def _facts(row: Row, *, has_accelerators: bool) -> dict[str, Any]:
    return row.model_dump(include={*Size.model_fields}) | {
        "accelerators": row.accelerators if has_accelerators else 0,
        "network_gbps": row.network_gbps or None,
        "capacity": _capacity([row]),
    }


def _capacity(rows: Iterable[Row]) -> tuple[str, ...]:
    sold = {each for row in rows for each in row.capacity.split(",")}
    return tuple(each for each in get_args(CapacityType) if each in sold)
