"""titan's tables of torchtitan's options, and what its recipes compute with weights, by torchtitan itself."""

import fnmatch
import json
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.training import in_environment
from tests.unit.assets.training.workload_modules import workload_on_the_path

PASS = Path(__file__).with_name("options.txt")
"""The options that no setting decides, and that do not contradict a run: read each new one in torchtitan."""

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]


def test_each_option_of_torchtitan_is_listed_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        each.removeprefix("--").replace("-", "_")
        for each in in_environment("titan", "titan_options.py").splitlines()
    }
    with workload_on_the_path(monkeypatch, "titan") as load:
        tables, decider_of = (load("options").DECIDED, load("options").REFUSED), load("options").decider_of
        patterns = {each for table in tables for names in table.values() for each in names}
        assert {each for each in patterns if not fnmatch.filter(options, each)} == set()
        assert sorted(each for each in options if not any(decider_of(each, x) for x in tables)) == (
            PASS.read_text(encoding="utf-8").split()
        )


RECIPES = "torchtitan.models.{}.config_registry:{}"


def compute(model: str, recipe: str, *weights: str) -> list[Any]:
    """Return the bias of the experts, theta and scaling of the embedding, and config.json of an export."""
    said = in_environment("titan", "titan_recipe.py", RECIPES.format(model, recipe), *weights)
    computed: list[Any] = json.loads(said.splitlines()[-1])
    return computed


def test_a_recipe_computes_as_its_weights(tmp_path: Path) -> None:
    for model, recipe, published, computed in (
        ("qwen3", "qwen3_moe_debug", {"model_type": "qwen3_moe", "rope_theta": 5e6}, [None, 5e6, "none"]),
        ("deepseek_v3", "deepseek_v3_debugmodel", {"model_type": "deepseek_v3"}, [1e-3, 1e4, "yarn"]),
        (
            "deepseek_v3",
            "deepseek_v3_debugmodel",
            {"text_config": {"topk_method": "noaux_tc"}},
            [1e-3, 1e4, "yarn"],
        ),
        ("llama3", "llama3_debugmodel", {"rope_theta": 5e5}, [None, 5e5, "none"]),
    ):
        (tmp_path / "config.json").write_text(json.dumps(published | {"quantization_config": {}}))
        assert compute(model, recipe, str(tmp_path)) == [*computed, published]


def test_an_export_of_a_recipe_has_a_config() -> None:
    *_, fused = compute("qwen3", "qwen3_debugmodel")
    *_, separate = compute("qwen3", "qwen3_debugmodel_non_fused_qkv")
    assert (fused["num_key_value_heads"], separate) == (8, fused)
    assert compute("qwen3", "qwen3_moe_debug")[-1] == {}
