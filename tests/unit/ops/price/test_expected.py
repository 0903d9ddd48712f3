"""`trainctl price titan`: whether a model fits, its speed by a published utilisation, days and USD."""

import json

import pytest

from ops.price.expected import expect
from tests.unit.ops.jobs_head_node import Call
from training_cluster.rules.context import read_settings

EIGHT_B = {"SIZE": "8B", "SEQ_LEN": "8192"}


def test_the_estimate_takes_the_published_speed() -> None:
    found = expect("titan", EIGHT_B, read_settings({"family": "p5", "nodes": "4"}))
    assert found.speed.per_s == pytest.approx(217_120, rel=0.01)  # the slower one of figures.json
    assert "39.7% of the peak" in found.speed.what
    assert not found.speed.is_measured
    assert found.tokens == 1000 * 32 * 8192
    assert any(each.startswith("memory: about ") for each in found.reasons)


def test_lora_computes_no_gradients_of_the_weights() -> None:
    cluster = read_settings({"family": "p5", "nodes": "4"})
    job = {**EIGHT_B, "INIT_FROM": "/fsx/none", "LEARNING_RATE": "1e-4"}
    whole, lora = (expect("titan", job | {"LORA_RANK": rank}, cluster).speed.per_s for rank in ("0", "8"))
    # 6 x 7.5 billion weights without the embedding, and 12.9 GFLOPs of attention, of 57.9.
    assert lora / whole == pytest.approx(57.91 / (57.91 - 45.03 / 3), rel=1e-3)


def test_other_families_take_the_published_utilisation() -> None:
    job = {**EIGHT_B, "MAX_STEPS": "9", "GLOBAL_BATCH": "64"}
    found = expect("titan", job, read_settings({"nodes": "4"}))
    assert found.speed.per_s == pytest.approx(217_120 * 312 / 989, rel=0.01)
    assert "of p5 (" in found.speed.what
    assert found.tokens == 9 * 64 * 8192


def test_weights_that_nobody_has_looked_at_are_named() -> None:
    job = {**EIGHT_B, "INIT_FROM": "/fsx/none"}
    found = expect("titan", job, read_settings({"family": "p5", "nodes": "4"}))
    assert "INIT_FROM=/fsx/none: not looked at here; trainctl submit does" in found.reasons


def test_a_large_model_says_what_to_type(call: Call) -> None:
    job = ("price", "titan", "--offline", "--set", "MODEL=llama3", "--set", "SIZE=70B")
    code, said, _ = call(*job, "-c", "family=p5", "-c", "nodes=64")
    assert code == 0
    assert "a checkpoint has 846.6 GB: the 1,200 GiB of Lustre have room for 1, and a run has up to 2" in said
    assert "trainctl submit refuses it" in said
    assert "a save takes 48 min at 293 MB/s, " in said
    assert "for saves in 5% of the time: -c fsx_gib=" in said
    assert "one node reads an image or environment of 20 GB (assumed) in 27 s" in said


def test_the_command_says_days_and_usd(call: Call) -> None:
    job = ("price", "titan", "--offline", "-c", "family=p5", "-c", "nodes=4", "--set", "SIZE=8B")
    code, said, _ = call(*job, "--set", "MAX_STEPS=1000000")
    assert code == 0
    assert "tokens (MAX_STEPS) take " in said
    assert "; the run " in said
    told = json.loads(call(*job, "--json")[1])
    assert told["job"]["tokens"] == 1000 * 32 * 8192
    # 500 steps of 64 sequences of 4096 tokens, at 40 % of 32 GPUs' peak.
    assert told["job"]["saves"] == {
        "bytes": 12 * 8_030_261_248,
        "most": 2,
        "every_s": pytest.approx(533, rel=0.01),
        "every_steps": 500,
        "steps": 1000,
    }
