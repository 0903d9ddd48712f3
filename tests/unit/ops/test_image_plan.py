"""`trainctl image-plan`: the content of an image, the order of its steps, what its build takes."""

import json

import pytest

from ops.image_plan import render_image_plan
from tests.unit.ops.jobs_head_node import Call
from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.steps import image_steps
from training_cluster.image.names import image_tags
from training_cluster.image.plan import ImagePlan, image_plan
from training_cluster.rules.context import read_settings


def plan(family: str = "p4d", **flags: str) -> ImagePlan:
    return image_plan(read_settings({"family": family, "image": "build", **flags}))


@pytest.mark.parametrize("family", family_names())
def test_every_family_s_plan_has_steps_and_versions(family: str) -> None:
    found, text = plan(family), render_image_plan(plan(family))
    settings = read_settings({"family": family})
    positions = [text.index(f"  {step.name} ") for step in image_steps(load_family(family).image_recipe)]
    assert positions == sorted(positions)
    for name, pin in found.pins.items():
        assert name in text
        assert pin.version in text
    for each in (found.parent_name, found.parameter, found.stack_name, *image_tags(settings)):
        assert each in text


def test_the_plan_shows_workloads_cost_and_packages() -> None:
    found, text = plan(), render_image_plan(plan())
    assert found.hour is not None
    assert f"about {found.hour.usd * found.recipe.usual_min / 60:.2f} USD" in text
    assert all(f"Packages of {name} " in text for name in found.packages)
    assert "workloads     none" in render_image_plan(plan(workloads="none"))
    assert "compute capability" not in render_image_plan(plan("trn1"))


def test_the_command_plans_every_image(call: Call) -> None:
    code, said, _ = call("image-plan", "m7i", "-c", "os=alinux2023")
    assert (code, "TrainingCluster-Image-cpu-alinux2023" in said) == (0, True)
    found = json.loads(call("image-plan", "p4d", "--json")[1])
    assert len(found["steps"]) == len(plan().steps)
    assert (found["parameter"], found["most_min"]) == (plan().parameter, plan().most_min)
