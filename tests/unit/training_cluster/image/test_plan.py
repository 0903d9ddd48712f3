"""The plan of an image: its content, the order of its steps, the time and cost of its build."""

import pytest

from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.steps import image_steps, load_steps
from training_cluster.catalog.versions import under
from training_cluster.catalog.workloads import load_workloads
from training_cluster.image.plan import AROUND_MIN, ImagePlan, image_plan
from training_cluster.rules.context import read_settings


def plan(family: str = "p4d", **flags: str) -> ImagePlan:
    return image_plan(read_settings({"family": family, "image": "build", **flags}))


@pytest.mark.parametrize("family", family_names())
def test_every_family_has_a_plan_with_its_steps(family: str) -> None:
    found = plan(family)
    assert family in found.families
    assert set(found.steps) == set(image_steps(load_family(family).image_recipe))


def test_steps_stand_in_the_order_in_which_they_run() -> None:
    names = [step.name for step in plan().steps]
    assert names == sorted(names)
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


def test_its_cost_is_that_of_the_instance_for_so_long() -> None:
    found = plan()
    assert found.hour is not None
    assert found.most_min == AROUND_MIN + -(-found.budget_s // 60)
    assert found.usd(60) == found.hour.usd
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


def test_packages_of_the_workloads_are_pinned() -> None:
    assert plan().packages
    for packages in plan().packages.values():
        assert packages
        assert all("==" in package for package in packages)
