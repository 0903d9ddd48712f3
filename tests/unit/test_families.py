"""The catalog of instance families: true to EC2's own data, and strict about typing errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from training_cluster.families import CATALOG, Family, family_names, load_base, load_family
from training_cluster.problems import ConfigurationError


def _ec2(family: Family, attribute: str = "instance_type") -> dict[str, object]:
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # noqa: PLC0415

    found: dict[str, object] = INSTANCE_TYPES[getattr(family, attribute)]
    return found


@pytest.mark.parametrize("name", family_names())
def test_a_family_agrees_with_the_data_of_ec2(name: str) -> None:
    family = load_family(name)
    data = _ec2(family)
    assert family.vcpus == data["VCpuInfo"]["DefaultVCpus"]  # type: ignore[index]
    assert family.memory_gib * 1024 == data["MemoryInfo"]["SizeInMiB"]  # type: ignore[index]
    network = data["NetworkInfo"]
    assert family.network_cards == network["MaximumNetworkCards"]  # type: ignore[index]
    efa = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)  # type: ignore[attr-defined]
    assert family.efa_interfaces == efa
    gpus = data.get("GpuInfo", {}).get("Gpus", [])  # type: ignore[attr-defined]
    assert family.accelerator.count == sum(gpu["Count"] for gpu in gpus)
    assert _ec2(family, "head_node_type")


def test_a_new_family_is_one_file(tmp_path: Path) -> None:
    shutil.copytree(CATALOG, tmp_path / "catalog")
    text = (CATALOG / "p5.yaml").read_text().replace("p5.48xlarge", "p5e.48xlarge")
    (tmp_path / "catalog" / "p5e.yaml").write_text(text)
    assert "p5e" in family_names(tmp_path / "catalog")
    assert load_family("p5e", tmp_path / "catalog").instance_type == "p5e.48xlarge"


@pytest.mark.parametrize(
    ("typed", "wrong", "words"),
    [
        ("instance_type:", "instance_typ:", ["instance_typ:", 'Did you mean "instance_type"?']),
        ("vcpus: 192", "vcpus: lots", ["p5.yaml", "vcpus", "integer"]),
        ("kind: gpu", "kind: gpuu", ["accelerator.kind", "'gpu'"]),
        ("queue: gpu", "queue: [gpu", ["p5.yaml: not valid YAML"]),
    ],
)
def test_a_typing_error_names_file_and_key(tmp_path: Path, typed: str, wrong: str, words: list[str]) -> None:
    text = (CATALOG / "p5.yaml").read_text()
    assert typed in text
    (tmp_path / "p5.yaml").write_text(text.replace(typed, wrong))
    with pytest.raises(ConfigurationError) as raised:
        load_family("p5", tmp_path)
    for word in ["p5.yaml", *words]:
        assert word in str(raised.value)


def test_base_yaml_is_strict_too(tmp_path: Path) -> None:
    text = (CATALOG / "base.yaml").read_text().replace("shared_dir", "shared_dri")
    (tmp_path / "base.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=re.escape('Did you mean "shared_dir"?')):
        load_base(tmp_path)
