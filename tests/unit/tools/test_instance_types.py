"""The table of EC2's instance types, made from EC2's own description."""

import gzip
import json
from importlib import resources

from tools.instance_types import render_zones, table_row
from training_cluster.catalog.instance_types import TABLE, ZONES


def test_table_is_made_from_the_installed_description() -> None:
    packed = resources.files("moto.ec2.resources").joinpath("instance_types.json.gz").read_bytes()
    rows = {
        str(row["type"]): row
        for row in filter(None, map(table_row, json.loads(gzip.decompress(packed)).values()))
    }
    header, *lines = TABLE.read_text().splitlines()[1:]
    names = header.split("\t")
    written = {line.split("\t")[0]: dict(zip(names, line.split("\t"), strict=True)) for line in lines}
    assert written == {
        type_: {key: str(value) for key, value in row.items()} for type_, row in rows.items()
    }, "python -m tools.instance_types"
    assert ZONES.read_text() == render_zones(), "python -m tools.instance_types"
