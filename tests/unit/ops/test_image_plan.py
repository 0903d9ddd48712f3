"""`trainctl image-plan`: the content of an image, the order of its steps, what its build takes."""

import json
import sys
from typing import Any

import pytest

from ops.__main__ import main
from ops.image_plan import render_image_plan
from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.steps import image_steps
from training_cluster.image.names import image_tags
from training_cluster.image.plan import ImagePlan, image_plan
from training_cluster.rules.context import read_settings


def plan(family: str = "p4d", **flags: str) -> ImagePlan:
    return image_plan(read_settings({"family": family, "image": "build", **flags}))


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["trainctl", "image-plan", *arguments])
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("family", family_names())
def test_every_family_s_plan_has_steps_and_versions(family: str) -> None:
    found, text = plan(family), render_image_plan(plan(family))
    settings = read_settings({"family": family})
    for step in image_steps(load_family(family).image_recipe):
        assert f"  {step.name} " in text
    for name, pin in found.pins.items():
        assert name in text
        assert pin.version in text
    for each in (found.parent_name, found.parameter, found.stack_name, *image_tags(settings)):
        assert each in text


def test_steps_are_shown_in_execution_order() -> None:
    text = render_image_plan(plan())
    positions = [text.index(f"  {step.name} ") for step in plan().steps]
    assert positions == sorted(positions)


def test_the_plan_shows_workloads_cost_and_packages() -> None:
    found, text = plan(), render_image_plan(plan())
    assert found.hour is not None
    assert f"about {found.hour.usd * found.recipe.usual_min / 60:.2f} USD" in text
    assert all(f"Packages of {name} " in text for name in found.packages)
    assert "workloads     none" in render_image_plan(plan(workloads="none"))
    assert "compute capability" not in render_image_plan(plan("trn1"))


def test_a_family_of_the_official_image_is_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "m7i", "-c", "os=alinux2023") == 0
    assert "TrainingCluster-Image-cpu-alinux2023" in capsys.readouterr().out


def test_as_json_it_is_one_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "p4d", "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert len(found["steps"]) == len(plan().steps)
    assert found["parameter"] == plan().parameter
    assert found["most_min"] == plan().most_min


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["p4"], 'Did you mean "p4d"?'),
        (["p4d", "-c", "workloads=nonsense"], "is not a workload with an environment"),
        (["p4d", "-c", "os=windows"], "allowed: ubuntu2204, ubuntu2404, alinux2023"),
    ],
)
def test_a_wrong_flag_is_one_message(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *arguments) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
