"""`make image-plan`: what an image would hold, in what order it is made, what it takes."""

from __future__ import annotations

import pytest

from tools.image_plan import main, render_image_plan
from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.steps import image_steps, load_steps
from training_cluster.catalog.versions import under
from training_cluster.catalog.workloads import load_workloads
from training_cluster.image.names import image_tags
from training_cluster.image.plan import AROUND_MIN, ImagePlan, image_plan
from training_cluster.rules.context import read_settings


def plan(family: str = "p4d", **flags: str) -> ImagePlan:
    return image_plan(read_settings({"family": family, "image": "build", **flags}))


@pytest.mark.parametrize("family", family_names())
def test_every_family_has_a_plan_with_its_steps_versions_and_place(family: str) -> None:
    found, text = plan(family), render_image_plan(plan(family))
    settings = read_settings({"family": family})
    assert family in found.families
    for step in image_steps(load_family(family).image_recipe):
        assert f"  {step.name} " in text
    for name, pin in found.pins.items():
        assert name in text
        assert pin.version in text
    for each in (found.parent_name, found.parameter, found.stack_name, *image_tags(settings)):
        assert each in text


def test_steps_stand_in_the_order_in_which_they_run() -> None:
    names = [step.name for step in plan().steps]
    assert names == sorted(names)
    text = render_image_plan(plan())
    positions = [text.index(f"  {name} ") for name in names]
    assert positions == sorted(positions)
    assert not {step.name for step in plan().steps} & {step.name for step in plan().start_steps}


def test_a_start_only_step_is_in_no_image() -> None:
    of_starts = {step.name for step in load_steps() if step.moment == "start"}
    for family in family_names():
        assert not of_starts & {step.name for step in plan(family).steps}


def test_the_step_of_the_workloads_takes_as_long_as_their_environments() -> None:
    found = plan()
    (step,) = [each for each in found.steps if each.makes_environments]
    assert found.step_budget_s(step) == sum(load_workloads()[each.name].budget_s for each in found.workloads)
    without = plan(workloads="none")
    assert without.workloads == ()
    assert found.budget_s - without.budget_s == found.step_budget_s(step)
    assert "workloads     none" in render_image_plan(without)


def test_its_cost_is_that_of_the_instance_for_so_long() -> None:
    found = plan()
    assert found.hour is not None
    assert found.most_min == AROUND_MIN + -(-found.budget_s // 60)
    assert found.usd(60) == found.hour.usd
    assert f"about {found.hour.usd * found.recipe.usual_min / 60:.2f} USD" in render_image_plan(found)
    for family in family_names():
        assert plan(family).recipe.usual_min < plan(family).most_min, "the usual build is within its budgets"


def test_volta_gets_no_driver_and_no_cuda_that_has_dropped_it() -> None:
    pins = plan("p3dn").pins
    assert under(pins["nvidia_driver"].version, "580")
    assert under(pins["cuda_toolkit"].version, "12.6")
    assert plan("p3dn").compute_capabilities == ("7.0",)
    assert "nvidia_driver" not in plan("p4d").pins


def test_volta_makes_environments_with_a_torch_that_has_not_dropped_it() -> None:
    assert "gpt2" in [each.name for each in plan("p3dn").workloads]
    assert under(plan("p3dn").pins["torch_volta"].version, "2.14")
    assert "torch_volta" not in plan("p4d").pins


def test_recipes_without_gpus_compile_for_none() -> None:
    assert plan("trn1").compute_capabilities == plan("m6i").compute_capabilities == ()
    assert "compute capability" not in render_image_plan(plan("trn1"))


def test_packages_of_the_workloads_stand_with_their_versions() -> None:
    text = render_image_plan(plan())
    for name, packages in plan().packages.items():
        assert f"Packages of {name} " in text
        assert packages
        assert all("==" in package for package in packages)


def test_the_command_prints_a_plan_whatever_the_family_takes_by_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["m7i", "-c", "os=alinux2023"]) == 0
    assert "TrainingCluster-Image-cpu-alinux2023" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["p4"], 'Did you mean "p4d"?'),
        (["p4d", "-c", "workloads=nonsense"], "is no workload with an environment"),
        (["p4d", "-c", "os=windows"], "allowed: ubuntu2204, ubuntu2404, alinux2023"),
    ],
)
def test_a_wrong_flag_is_one_message(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
