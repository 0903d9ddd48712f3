"""Combinations of images and workloads, and the messages about those that do not fit."""

from pathlib import Path

import pytest

from training_cluster.catalog.families import family_names, load_base
from training_cluster.catalog.steps import load_steps
from training_cluster.catalog.workloads import Workload, workloads_of
from training_cluster.cluster.nodes import LARGEST_VOLUME_GIB, own_images
from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import BUILT_IMAGE, config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings
from training_cluster.rules.image import install_budget_s

AMI = "ami-0123456789abcdef0"


def settings(**flags: str) -> Settings:
    return read_settings(flags)


def refusal(**flags: str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        settings(**flags)
    return str(raised.value)


@pytest.fixture
def some_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add three workloads to gpt2: one that compiles for hours, one for images, one for Trainium."""
    made = {
        name: Workload(name=name, recipes=recipes, budget_s=budget_s, image_only=image_only)
        for name, recipes, budget_s, image_only in (
            ("compiles", ("gpu", "volta"), 5400, False),
            ("in-images", ("gpu",), 60, True),
            ("neuron-one", ("neuron",), 60, False),
            ("quick", ("gpu", "cpu"), 60, False),
        )
    }
    for module in ("flags.compute", "rules.image", "catalog.workloads"):
        monkeypatch.setattr(f"training_cluster.{module}.load_workloads", lambda *_: made)


def test_a_built_image_has_all_that_suit() -> None:
    for family in family_names():
        built = settings(family=family, image="build")
        assert built.node_workloads == workloads_of(built.family_facts.image_recipe)
    assert settings().node_workloads == ()
    assert settings(image=AMI).node_workloads == ()
    assert settings(image="build", workloads="none").node_workloads == ()
    assert "titan" not in settings(image="build", os="ubuntu2204").node_workloads
    assert "titan" in settings(image="build").node_workloads
    said = refusal(image="build", os="ubuntu2204", workloads="titan,gpt2")
    assert "titan needs Python 3.11, 3.12, 3.13, and os=ubuntu2204 has 3.10" in said
    assert "type:    -c os=ubuntu2404 (of a new cluster), or -c workloads=gpt2" in said
    assert "too long to compile" in refusal(workloads="gpt2-megatron")
    assert settings(family="m6i", workloads="gpt2-megatron")


@pytest.mark.usefixtures("some_workloads")
def test_workloads_of_an_image_are_checked() -> None:
    """Another order would be another image."""
    assert settings(image="build", workloads="quick,compiles,quick").node_workloads == ("compiles", "quick")
    said = refusal(image="build", workloads="quick,complies")
    assert '"complies" is not a workload' in said
    assert 'Did you mean "compiles"?' in said
    assert "-c workloads=none" in said
    assert "not allowed" in refusal(workloads="../etc")
    said = refusal(image="build", workloads="neuron-one,quick")
    assert "neuron-one has no environment for the recipe gpu of p4d, only for neuron" in said
    assert "type:    -c workloads=quick" in said
    assert "type:    -c workloads=none" in refusal(image="build", workloads="neuron-one")


@pytest.mark.usefixtures("some_workloads")
def test_what_does_not_fit_a_start_is_refused() -> None:
    said = refusal(workloads="compiles")
    left = load_base().compute_node.most_install_s - install_budget_s(settings())
    assert "may take 5400 s at each node's start" in said
    assert f"of the limit of 1800 s the other steps leave {left} s" in said
    assert "type:    -c image=build" in said
    assert settings(workloads="quick").node_workloads == ("quick",)
    assert settings(image="build", workloads="compiles")
    # An image of one's own may have it.
    assert settings(image=AMI, workloads="compiles")
    said = refusal(workloads="in-images")
    assert "the packages of in-images take too long to compile" in said
    assert "-c image=build" in said


def test_the_steps_leave_time_in_a_start() -> None:
    for family in family_names():
        assert install_budget_s(settings(family=family)) < load_base().compute_node.most_install_s, family
    assert [step.name for step in load_steps() if step.makes_environments] == ["50-install-workloads"]


def test_what_a_built_image_needs() -> None:
    assert "builds nothing with image=official" in refusal(image_rebuild="monthly")
    assert f"builds nothing with image={AMI}" in refusal(image_rebuild="monthly", image=AMI)
    assert settings(image_rebuild="monthly", image="build")
    assert settings(image_rebuild="monthly", family="p3dn")
    builds = load_base().image_recipes["gpu"].build_instance_type
    for flags, needed in (({"image": "build"}, True), ({}, False)):
        found = settings(**flags)
        assert (builds in zone_needs(found, config_before_deploy(found))["InstanceTypes"]) is needed
    assert 'Image Builder takes no tag with the key "équipe"' in refusal(image="build", tags="équipe=nlp")
    assert settings(image="build", tags="cost center=équipe")
    assert settings(image="official", tags="équipe=nlp")


def test_images_of_all_nodes_are_checked(tmp_path: Path) -> None:
    def images(**flags: str) -> dict[str, int]:
        return own_images(config_before_deploy(settings(**flags)), built=BUILT_IMAGE)

    assert images(head_image=AMI, head_root_gib="200") == {AMI: 200}
    assert images(image=AMI, compute_root_gib="150") == {AMI: 150}
    assert images(image="build") == {}
    file = tmp_path / "overrides.yaml"
    file.write_text(f"LoginNodes: {{Pools: [{{Name: login, Image: {{CustomAmi: {AMI}}}}}]}}\n")
    assert images(login_nodes="1", overrides=str(file)) == {AMI: LARGEST_VOLUME_GIB}
