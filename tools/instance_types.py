"""Generator of cluster_configs/instance_types.tsv and zones.tsv: EC2's own description of its instance types.

    python -m tools.instance_types [us-east-1]

Without a region it reads the description that moto bundles, and needs no account. With one it asks EC2 for
the types alone; zones would need a call in every region.
"""

import csv
import datetime
import gzip
import importlib.metadata
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import boto3
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.instance_types import COLUMNS, TABLE, ZONES, family_of_type, refused_family

Described = Mapping[str, Any]
"""Instance type as EC2 describes it."""

_CAPACITY = {
    "on-demand": ("ondemand", "reservation"),
    "spot": ("spot",),
    "capacity-block": ("capacity-block",),
}
_ARCHITECTURES = ("x86_64", "arm64")
_LEAST_MIB = 1024
_COMMON = ("g5", "g6", "g6e", "m6i", "m7i")
"""Families that are in most zones, which are not listed."""


def main(arguments: list[str]) -> None:
    """Write cluster_configs/instance_types.tsv."""
    if arguments:
        ec2, where = boto3.client("ec2", region_name=arguments[0]), arguments[0]
        pages = ec2.get_paginator("describe_instance_types").paginate()
        described: Iterable[Described] = [each for page in pages for each in page["InstanceTypes"]]
        source = f"EC2 DescribeInstanceTypes, {where}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    else:
        described = _bundled()
        source = f"EC2 DescribeInstanceTypes, as moto {importlib.metadata.version('moto')} bundles it"
        ZONES.write_text(render_zones(), encoding="utf-8")
    rows = sorted(filter(None, map(table_row, described)), key=lambda row: str(row["type"]))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {source}. Written by tools/instance_types.py.\n")
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{TABLE.name}: {len(rows)} instance types")


def _bundled() -> list[Described]:
    packed = resources.files("moto.ec2.resources").joinpath("instance_types.json.gz").read_bytes()
    return list(json.loads(gzip.decompress(packed)).values())


def render_zones() -> str:
    """Render a line for the main size of each family: the zones that offer it, by region."""
    offered: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for region, offerings in sorted(INSTANCE_TYPE_OFFERINGS["availability-zone-id"].items()):
        for each in offerings:
            offered[each["InstanceType"]].setdefault(region, []).append(each["Location"])
    lines = []
    for main_size in (load_family(name).main_size for name in family_names() if name not in _COMMON):
        words = (f"{region}:{','.join(sorted(zones))}" for region, zones in offered[main_size].items())
        lines.append(f"{main_size}\t{' '.join(words)}\n")
    version = importlib.metadata.version("moto")
    source = f"EC2 DescribeInstanceTypeOfferings, as moto {version} bundles it"
    return f"# {source}. Written by tools/instance_types.py.\n" + "".join(lines)


def table_row(described: Described) -> dict[str, object] | None:
    """Return a type's row; None for what cannot be a node: a Mac, less than 1 GiB, an UltraServer's node."""
    architectures = described["ProcessorInfo"]["SupportedArchitectures"]
    architecture = next((each for each in _ARCHITECTURES if each in architectures), None)
    if architecture is None or described["MemoryInfo"]["SizeInMiB"] < _LEAST_MIB:
        return None
    if refused_family(family_of_type(described["InstanceType"])):
        return None
    network = described["NetworkInfo"]
    sold = (name for usage in described["SupportedUsageClasses"] for name in _CAPACITY[usage])
    return {
        "type": described["InstanceType"],
        "architecture": architecture,
        "vcpus": described["VCpuInfo"]["DefaultVCpus"],
        "threads_per_core": described["VCpuInfo"].get("DefaultThreadsPerCore", 1),
        "memory_gib": described["MemoryInfo"]["SizeInMiB"] // 1024,
        "network_cards": network["MaximumNetworkCards"],
        "network_gbps": f"{_network_gbps(network):g}",
        "efa_interfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "nvme_gb": _nvme_gb(described),
        "capacity": ",".join(sold),
        **_accelerators(described),
    }


def _network_gbps(network: Described) -> float:
    """Return EC2's figure of the whole node, such as "4x 100 Gigabit"; without one the sum of its cards.

    The sum is wrong for some types: each card of c6in.32xlarge has the rate of the node.
    """
    stated = re.fullmatch(r"(?:Up to )?(?:(\d+)x )?([\d.]+) Gigabit", network["NetworkPerformance"])
    if stated:
        return int(stated[1] or 1) * float(stated[2])
    return sum(float(card.get("PeakBandwidthInGbps", 0)) for card in network["NetworkCards"])


def _nvme_gb(described: Described) -> int:
    storage = described.get("InstanceStorageInfo", {})
    return int(storage["TotalSizeInGB"]) if storage.get("NvmeSupport") in {"required", "supported"} else 0


def _accelerators(described: Described) -> dict[str, object]:
    for gpu in described.get("GpuInfo", {}).get("Gpus", []):
        # A fraction of a GPU counts as one GPU, with that fraction of the memory.
        count = int(gpu.get("LogicalGpuCount") or gpu["Count"])
        gib = described["GpuInfo"]["TotalGpuMemoryInMiB"] / count / 1024
        return _accelerator(f"{gpu['Manufacturer']} {gpu['Name']}", count, gib, cores=1)
    for chip in described.get("NeuronInfo", {}).get("NeuronDevices", []):
        gib = chip["MemoryInfo"]["SizeInMiB"] / 1024
        return _accelerator(f"AWS {chip['Name']}", chip["Count"], gib, cores=chip["CoreInfo"]["Count"])
    return _accelerator("", 0, 0, cores=0)


def _accelerator(name: str, count: int, memory_gib: float, *, cores: int) -> dict[str, object]:
    return {
        "accelerator": name,
        "accelerators": count,
        "accelerator_memory_gib": f"{memory_gib:g}",
        "accelerator_cores": cores,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
