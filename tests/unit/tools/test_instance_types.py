"""The table of EC2's instance types, made from EC2's own description."""

import gzip
import json
import re
from importlib import resources
from typing import Any

import pytest

from tools.instance_types import table_row
from training_cluster.catalog.instance_types import TABLE


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """Return EC2's description of its types, as moto bundles it."""
    packed = resources.files("moto.ec2.resources").joinpath("instance_types.json.gz").read_bytes()
    types: dict[str, Any] = json.loads(gzip.decompress(packed))
    return types


def test_a_part_of_a_gpu_counts_as_one_with_its_memory(described: dict[str, Any]) -> None:
    row = table_row(described["g6f.xlarge"])
    assert row
    assert (row["accelerators"], row["accelerator"]) == (1, "NVIDIA L4")
    assert float(str(row["accelerator_memory_gib"])) < 4  # an eighth of 24 GB


def test_types_that_cannot_be_nodes_are_left_out(described: dict[str, Any]) -> None:
    assert {table_row(described[each]) for each in ("mac2.metal", "t3.nano", "trn2u.48xlarge")} == {None}


@pytest.mark.parametrize(
    ("type_", "gbps"),
    [
        ("c6in.32xlarge", "200"),  # two cards, each of which has the node's rate
        ("p4d.24xlarge", "400"),  # stated as "4x 100 Gigabit"
        ("p6-b200.48xlarge", "3200"),  # eight cards of 200
        ("c5.large", "10"),  # stated as "Up to 10 Gigabit"
        ("m4.xlarge", "2.8"),  # stated as "High"
    ],
)
def test_network_rate_is_the_whole_node_s(described: dict[str, Any], type_: str, gbps: str) -> None:
    row = table_row(described[type_])
    assert row
    assert row["network_gbps"] == gbps


def test_types_of_accelerated_families_have_accelerators(described: dict[str, Any]) -> None:
    rows = [row for row in map(table_row, described.values()) if row]
    without = {str(row["type"]) for row in rows if not row["accelerators"]}
    assert {each for each in without if re.match(r"(p|g|trn|inf)\d", each)} == set()


def test_the_table_is_that_of_the_installed_description(described: dict[str, Any]) -> None:
    rows = {str(row["type"]): row for row in filter(None, map(table_row, described.values()))}
    header, *lines = TABLE.read_text().splitlines()[1:]
    names = header.split("\t")
    written = {line.split("\t")[0]: dict(zip(names, line.split("\t"), strict=True)) for line in lines}
    assert written == {
        type_: {key: str(value) for key, value in row.items()} for type_, row in rows.items()
    }, "python -m tools.instance_types"
