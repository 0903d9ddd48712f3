"""The plan of an image: its content, the order of its steps, the time and cost of its build."""

from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.steps import image_steps, load_steps
from training_cluster.catalog.versions import under
from training_cluster.catalog.workloads import load_workloads
from training_cluster.image.plan import ImagePlan, image_plan
from training_cluster.rules.context import read_settings


def plan(family: str = "p4d", **flags: str) -> ImagePlan:
    return image_plan(read_settings({"family": family, "image": "build", **flags}))


def test_every_family_has_a_plan_with_its_steps() -> None:
    of_starts = {step.name for step in load_steps() if step.moment == "start"}
    for family in family_names():
        found = plan(family)
        assert family in found.families
        assert set(found.steps) == set(image_steps(load_family(family).image_recipe))
        names = [step.name for step in found.steps]
        assert names == sorted(names), "the order in which they run"
        assert not of_starts & {*names}
        assert found.recipe.usual_min < found.most_min, "the usual build is within its budgets"
        assert all("==" in each for packages in found.packages.values() for each in packages)


def test_environments_take_as_long_as_their_workloads_say() -> None:
    found = plan()
    (step,) = [each for each in found.steps if each.makes_environments]
    assert found.step_budget_s(step) == sum(load_workloads()[each.name].budget_s for each in found.workloads)
    without = plan(workloads="none")
    assert without.workloads == ()
    assert found.budget_s - without.budget_s == found.step_budget_s(step)


def test_volta_gets_nothing_that_has_dropped_it() -> None:
    volta, others = plan("p3dn"), plan("p4d")
    for pin, ceiling in {"nvidia_driver": "580", "cuda_toolkit": "12.6", "torch_volta": "2.14"}.items():
        assert under(volta.pins[pin].version, ceiling)
    assert not {"nvidia_driver", "torch_volta"} & set(others.pins)
    assert "gpt2" in [each.name for each in volta.workloads]
    assert volta.compute_capabilities == ("7.0",)
    assert plan("trn1").compute_capabilities == plan("m6i").compute_capabilities == ()
