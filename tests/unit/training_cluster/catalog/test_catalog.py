"""The catalog of instance families: true to EC2's own data, sourced, and strict about typing errors."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from training_cluster.catalog.families import (
    CATALOG,
    family_names,
    find_instance_type,
    head_node_size,
    load_base,
    load_family,
)
from training_cluster.catalog.family import FACTS, UNCONFIRMED, Size
from training_cluster.cluster.fleet import PRIVATE_PREFIX, RESERVED_ADDRESSES
from training_cluster.problems import ConfigurationError

TYPES = [(name, each) for name in family_names() for each in load_family(name).sizes]


def _ec2(instance_type: str) -> dict[str, Any]:
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # noqa: PLC0415

    found: dict[str, Any] = INSTANCE_TYPES[instance_type]
    return found


def test_sockets_and_cores_agree_with_ec2() -> None:
    sizes = {each: load_family(name).sizes[each] for name, each in TYPES}
    known = {each: size for each, size in sizes.items() if size.sockets and size.cores_per_socket}
    assert {each: (size.sockets or 0) * (size.cores_per_socket or 0) for each, size in known.items()} == {
        each: _ec2(each)["VCpuInfo"]["DefaultCores"] for each in known
    }


def test_the_most_nodes_of_any_size_have_addresses() -> None:
    for name, instance_type in TYPES:
        size = load_family(name).sizes[instance_type]
        nodes = 4096 * (1 if size.efa else size.network_cards) + load_base().cpu_queue.nodes
        free = 2 ** (32 - PRIVATE_PREFIX) - 5  # AWS keeps five
        assert nodes + RESERVED_ADDRESSES <= free, instance_type


def test_a_family_can_be_deployed_and_has_sources() -> None:
    base = load_base()
    for name in family_names():
        family = load_family(name)
        size = family.sizes[family.main_size]
        assert all(base.source(family, fact) for fact in FACTS)
        assert head_node_size(family.head_node_type), "the head node's type is checked against nodes"
        assert (
            (size.accelerators > 0) == (family.accelerator.kind != "none") == (family.accelerator.cores > 0)
        )
        assert family.image_recipe in base.image_recipes


def test_base_yaml_offers_head_nodes_smallest_first() -> None:
    base = load_base()
    sizes = [(size.vcpus, size.memory_gib) for size in base.head_node.types.values()]
    assert sizes == sorted(sizes)
    found = find_instance_type(base.cpu_queue.instance_type)
    assert found
    assert found[0].accelerator.kind == "none"


def test_a_typing_error_names_the_closest_key(tmp_path: Path) -> None:
    for typed, wrong, words in (
        ("main_size:", "main_siz:", ["main_siz:", 'Did you mean "main_size"?']),
        ("main_size: p5.48xlarge", "main_size: p5.49xlarge", ["main_size p5.49xlarge is not among sizes"]),
        ("sockets: 2", "sockets: two", ["sizes.p5.48xlarge.sockets", "integer"]),
        ("sockets: 2", "vcpus: 96", ["sizes.p5.48xlarge.vcpus: instance_types.tsv has", "sources: vcpus"]),
        ("sizes:", "sizes: 7\nsize:", ["sizes: ", "dictionary"]),
        ("accelerator: {", "accelerator: {kind: gpuu, ", ["accelerator.kind", "'gpu'"]),
        ("main_size: p5", "main_size: [p5", ["p5.yaml: not valid YAML"]),
        ("main_size: p5", "capacity: [on-demand]\nmain_size: p5", ["capacity.0", "'ondemand'"]),
        ("main_size: p5", "name: p5\nmain_size: p5", ["name: ", "the name of the file"]),
        ("main_size: p5", "1: p5\nmain_size: p5", ["1: ", "string"]),
        ("  sockets: ", "  socketts: ", ['no fact "socketts"', 'Did you mean "sockets"?']),
    ):
        text = (CATALOG / "p5.yaml").read_text()
        assert typed in text
        (tmp_path / "p5.yaml").write_text(text.replace(typed, wrong, 1))
        with pytest.raises(ConfigurationError) as raised:
            load_family("p5", tmp_path)
        for word in ["p5.yaml", *words]:
            assert word in str(raised.value)


@pytest.mark.parametrize(
    ("file", "key", "wrong"),
    [
        ("base.yaml", "shared_dir", "shared_dri"),
        ("prices.yaml", "s3_gb_month", "s3_gb_mnth"),
        ("quotas.yaml", "nat_gateways", "nat_gatewys"),
    ],
)
def test_the_shared_files_are_strict_too(tmp_path: Path, file: str, key: str, wrong: str) -> None:
    catalog = shutil.copytree(CATALOG, tmp_path / "catalog")
    (catalog / file).write_text((CATALOG / file).read_text().replace(key, wrong))
    with pytest.raises(ConfigurationError, match=re.escape(f'Did you mean "{key}"?')) as raised:
        load_base(catalog)
    assert str(raised.value).startswith(f"{file}: ")


def test_fact_with_its_source_replaces_ec2s(tmp_path: Path) -> None:
    text = (CATALOG / "p5.yaml").read_text().replace("{usd_per_hour: 6.88}", "{memory_gib: 255}")
    text = text.replace("\nsources:\n", "\nsources:\n  memory_gib: free -g\n  usd_per_hour: unconfirmed\n")
    (tmp_path / "p5.yaml").write_text(text)
    sizes = load_family("p5", tmp_path).sizes
    assert [(size.vcpus, size.memory_gib) for size in sizes.values()] == [(192, 2048), (16, 255)]


def test_a_fact_without_a_value_must_say_so(tmp_path: Path) -> None:
    text = (CATALOG / "p4d.yaml").read_text().replace("usd_per_hour: 21.96", "usd_per_hour: null")
    (tmp_path / "p4d.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=f"say `usd_per_hour: {UNCONFIRMED}`"):
        load_family("p4d", tmp_path)


def test_a_size_that_the_family_lacks_is_refused() -> None:
    assert isinstance(load_family("g5").size("g5.xlarge"), Size)
    with pytest.raises(ConfigurationError, match=re.escape('Did you mean "g5.48xlarge"?')):
        load_family("g5").size("g5.48xlarg")
