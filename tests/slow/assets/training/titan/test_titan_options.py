"""titan's tables of torchtitan's options, and what its recipes compute with weights, by torchtitan itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.training import in_environment
from tests.unit.assets.training.workload_modules import workload_on_the_path

PASS = Path(__file__).with_name("options.txt")
"""The options that no setting decides, and that do not contradict a run: read each new one in torchtitan."""

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]


def test_torchtitan_has_each_option_that_is_refused_and_the_others_are_those_that_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {
        each.removeprefix("--").replace("-", "_")
        for each in in_environment("titan", "titan_options.py").splitlines()
    }
    with workload_on_the_path(monkeypatch, "titan") as load:
        tables, decider_of = (load("options").DECIDED, load("options").REFUSED), load("options").decider_of
        refused = {each for table in tables for names in table.values() for each in names}
        assert {each for each in refused if not any(f"{x}.".startswith(f"{each}.") for x in options)} == set()
        assert sorted(each for each in options if not any(decider_of(each, x) for x in tables)) == (
            PASS.read_text(encoding="utf-8").split()
        )


RECIPES = "torchtitan.models.{}.config_registry:{}"


@pytest.mark.parametrize(
    ("model", "recipe", "published", "computes"),
    [
        ("qwen3", "qwen3_moe_debug", {"model_type": "qwen3_moe", "rope_theta": 5e6}, "None 5000000.0 none"),
        ("deepseek_v3", "deepseek_v3_debugmodel", {"model_type": "deepseek_v3"}, "0.001 10000.0 yarn"),
        (
            "deepseek_v3",
            "deepseek_v3_debugmodel",
            {"text_config": {"topk_method": "noaux_tc"}},
            "0.001 10000.0 yarn",
        ),
        ("llama3", "llama3_debugmodel", {"rope_theta": 500000.0}, "None 500000.0 none"),
    ],
)
def test_a_recipe_computes_as_the_weights_that_it_begins_with(
    tmp_path: Path, model: str, recipe: str, published: dict[str, Any], computes: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(published))
    said = in_environment("titan", "titan_recipe.py", RECIPES.format(model, recipe), str(tmp_path))
    assert said.splitlines()[-1] == computes
