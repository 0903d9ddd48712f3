"""The table of EC2's instance types, made from EC2's own description."""

from __future__ import annotations

import gzip
import json
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


def test_macs_and_half_a_gib_of_memory_are_left_out(described: dict[str, Any]) -> None:
    assert [table_row(described[each]) for each in ("mac2.metal", "t3.nano")] == [None, None]


def test_the_table_is_that_of_the_installed_description(described: dict[str, Any]) -> None:
    rows = {str(row["type"]): row for row in filter(None, map(table_row, described.values()))}
    header, *lines = TABLE.read_text().splitlines()[1:]
    names = header.split("\t")
    written = {line.split("\t")[0]: dict(zip(names, line.split("\t"), strict=True)) for line in lines}
    assert written == {
        type_: {key: str(value) for key, value in row.items()} for type_, row in rows.items()
    }, "python -m tools.instance_types"
