"""The catalog of families and workloads: true to EC2's data, sourced, strict about typing errors."""

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
from training_cluster.catalog.instance_types import make_family, other_families, table_source
from training_cluster.catalog.workloads import environments_budget_s, load_workloads, workloads_of
from training_cluster.cluster.fleet import PRIVATE_PREFIX, RESERVED_ADDRESSES
from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

TYPES = [(name, each) for name in family_names() for each in load_family(name).sizes]


def _ec2(instance_type: str) -> dict[str, Any]:
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # noqa: PLC0415

    found: dict[str, Any] = INSTANCE_TYPES[instance_type]
    return found


def test_facts_agree_with_ec2() -> None:
    sizes = {each: load_family(name).sizes[each] for name, each in TYPES}
    known = {each: size for each, size in sizes.items() if size.sockets and size.cores_per_socket}
    assert {each: (size.sockets or 0) * (size.cores_per_socket or 0) for each, size in known.items()} == {
        each: _ec2(each)["VCpuInfo"]["DefaultCores"] for each in known
    }
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


def test_facts_have_values_and_sources(tmp_path: Path) -> None:
    text = (CATALOG / "p5.yaml").read_text().replace("{usd_per_hour: 6.88}", "{memory_gib: 255}")
    text = text.replace("\nsources:\n", "\nsources:\n  memory_gib: free -g\n  usd_per_hour: unconfirmed\n")
    (tmp_path / "p5.yaml").write_text(text)
    text = (CATALOG / "p4d.yaml").read_text().replace("usd_per_hour: 21.96", "usd_per_hour: null")
    (tmp_path / "p4d.yaml").write_text(text)
    sizes = load_family("p5", tmp_path).sizes
    assert [(size.vcpus, size.memory_gib) for size in sizes.values()] == [(192, 2048), (16, 255)]
    with pytest.raises(ConfigurationError, match=f"say `usd_per_hour: {UNCONFIRMED}`"):
        load_family("p4d", tmp_path)
    assert isinstance(load_family("g5").size("g5.xlarge"), Size)
    with pytest.raises(ConfigurationError, match=re.escape('Did you mean "g5.48xlarge"?')):
        load_family("g5").size("g5.48xlarg")


def test_every_family_of_ec2_is_a_family() -> None:
    assert len(other_families()) > 150
    assert all((family := load_family(name)).main_size in family.sizes for name in other_families())


def test_a_family_without_a_file_has_conservative_settings() -> None:
    for name, kind, precision, architecture, queue in (
        ("g4dn", "gpu", "fp16", "x86_64", "gpu"),
        ("g5g", "gpu", "fp16", "arm64", "gpu"),
        ("g7e", "gpu", "bf16", "x86_64", "gpu"),
        ("inf2", "neuron", "bf16", "x86_64", "trn"),
        ("inf1", "none", "no", "x86_64", "cpu"),
        ("c7i", "none", "no", "x86_64", "cpu"),
        ("m7g", "none", "no", "arm64", "cpu"),
    ):
        family = make_family(name)
        assert family
        assert (family.accelerator.kind, family.mixed_precision) == (kind, precision)
        assert (family.architecture, family.queue) == (architecture, queue)
        assert (family.job_environment, family.nccl_floors) == ((), ())
        assert family.notice
        assert table_source() in family.notice
        assert ("no code for its GPUs" in family.notice) == (name == "g5g")


def test_an_instance_type_decides_the_family() -> None:
    found = read_settings({"instance_type": "g4dn.12xlarge"})
    assert (found.family, found.compute_type, found.size.accelerators) == ("g4dn", "g4dn.12xlarge", 4)
    assert read_settings({"instance_type": "p5.48xlarge"}).family == "p5"
    again = read_settings(found.model_dump(mode="json", exclude_defaults=True))
    assert again == found
    small = find_instance_type("m6i.large")
    assert small
    assert (small[0].head_root_gib, small[1].vcpus) == (load_family("m6i").head_root_gib, 2)
    assert find_instance_type("m6i.13xlarge") is None
    assert find_instance_type("nonsense") is None
    found = read_settings({"family": "m7g", "login_nodes": "1"})
    used = zone_needs(found, config_before_deploy(found))["InstanceTypes"]
    assert {find_instance_type(each)[0].architecture for each in used} == {"arm64"}  # type: ignore[index]


def workload(tmp_path: Path, header: str, install: str | None = None) -> Path:
    folder = tmp_path / "bert"
    folder.mkdir(parents=True)
    (folder / "requirements.txt").write_text(f"{header}torch==2.13.0\n# Budget: 9999 s\n")
    if install is not None:
        (folder / "install.sh").write_text(install)
    return tmp_path


def test_workloads_have_budgets_and_pythons(tmp_path: Path) -> None:
    install = "#!/usr/bin/env bash\n# Moment: image\n# Budget: 900 s\n"
    training = workload(tmp_path, "# BERT.\n# Recipes: neuron\n# Budget: 300 s\n", install)
    found = load_workloads(training)["bert"]
    assert (found.budget_s, found.recipes, found.image_only) == (1200, ("neuron",), True)
    assert environments_budget_s(("bert",), training) == 1200
    assert environments_budget_s((), training) == 0
    assert workloads_of("neuron", training=training) == ("bert",)
    assert workloads_of("gpu", training=training) == ()
    training = workload(tmp_path / "pythons", "# Recipes: gpu\n# Pythons: 3.11 3.12\n# Budget: 300 s\n")
    assert workloads_of("gpu", "ubuntu2404", training) == ("bert",)
    assert workloads_of("gpu", "alinux2023", training) == ("bert",)
    assert workloads_of("gpu", "ubuntu2204", training) == ()


@pytest.mark.parametrize(
    ("header", "install", "said"),
    [
        ("# Recipes: all\n", None, "requirements.txt: its header states no budget"),
        ("# Recipes: all\n# Budget: 5 min\n", None, "add `# Budget: 300 s`"),
        ("# Budget: 300 s\n", None, "no line `# Recipes: gpu cpu`"),
        ("# Recipes: gpu tpu\n# Budget: 300 s\n", None, '"tpu" is not a recipe'),
        ("# Recipes: all\n# Budget: 300 s\n", "echo\n", "install.sh: its header states no budget"),
    ],
)
def test_a_header_that_says_too_little_is_refused(
    tmp_path: Path, header: str, install: str | None, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        load_workloads(workload(tmp_path, header, install))


def test_an_unknown_workload_is_refused(tmp_path: Path) -> None:
    training = workload(tmp_path, "# Recipes: all\n# Budget: 300 s\n")
    with pytest.raises(ConfigurationError, match=r'no workload "gpt9".*Allowed: bert'):
        environments_budget_s(("gpt9",), training)
