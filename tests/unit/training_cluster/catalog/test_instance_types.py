"""Families without a file: EC2's facts, and conservative settings."""

from training_cluster.catalog.families import find_instance_type, load_family
from training_cluster.catalog.instance_types import make_family, other_families, table_source
from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings


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


def test_a_type_without_facts_has_its_familys_settings() -> None:
    found = find_instance_type("m6i.large")
    assert found
    assert (found[0].head_root_gib, found[1].vcpus) == (load_family("m6i").head_root_gib, 2)
    assert find_instance_type("m6i.13xlarge") is None
    assert find_instance_type("nonsense") is None


def test_an_instance_type_alone_decides_the_family() -> None:
    found = read_settings({"instance_type": "g4dn.12xlarge"})
    assert (found.family, found.compute_type, found.size.accelerators) == ("g4dn", "g4dn.12xlarge", 4)
    assert read_settings({"instance_type": "p5.48xlarge"}).family == "p5"
    again = read_settings(found.model_dump(mode="json", exclude_defaults=True))
    assert again == found


def test_arm_nodes_have_arm_head_nodes() -> None:
    found = read_settings({"family": "m7g", "login_nodes": "1"})
    used = zone_needs(found, config_before_deploy(found))["InstanceTypes"]
    assert {find_instance_type(each)[0].architecture for each in used} == {"arm64"}  # type: ignore[index]
