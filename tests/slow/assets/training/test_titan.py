"""The titan workload on two nodes of a real Slurm on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.training import (
    Training,
    check_that_divergence_ends_a_run,
    losses,
    ranks,
    training_on_slurm,
    wait_until,
)
from training_cluster.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

STEPS, SAVED_EVERY = 12, 5
SETTINGS = {
    "MAX_STEPS": str(STEPS),
    "CHECKPOINT_EVERY": str(SAVED_EVERY),
    "WARMUP_STEPS": "2",
    "EVAL_EVERY": "6",
}
TOKENIZER_CONFIG = {
    "eos_token": "<|endoftext|>",
    "chat_template": "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}",
}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training_on_slurm(tmp_path_factory.mktemp("titan"), workload="titan", env=SETTINGS) as training:
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> list[dict[str, Any]]:
    """The rows of the steps of a run that nothing interrupts."""
    training.run("whole")
    return training.metrics("whole")


@pytest.fixture(scope="module")
def weights(training: Training, whole_run: list[dict[str, Any]]) -> Path:
    """The exported weights of that run, with a template of chats."""
    folder = training.run_dir("whole") / "export"
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
    return folder


def test_titan_trains_on_two_nodes_as_one_world_and_its_loss_falls(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    assert [row["step"] for row in whole_run] == list(range(1, STEPS + 1))
    assert {row["world_size"] for row in whole_run} == {2}
    assert whole_run[-1]["loss"] < whole_run[0]["loss"] - 0.5
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"
    first, last = training.validations("whole")
    assert (first["step"], last["step"]) == (6, 12)
    assert last["val_loss"] < first["val_loss"]


def test_titan_exports_what_transformers_loads(training: Training, weights: Path) -> None:
    config = json.loads((weights / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert {"model.safetensors.index.json", "tokenizer.json"} <= {file.name for file in weights.iterdir()}
    assert list(weights.glob("*.safetensors"))


def test_titan_killed_in_the_middle_starts_again_by_itself_and_gives_the_very_same_losses(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    job_id = training.submit("killed")
    training.wait_for_step(job_id, "killed", 2)
    victim, *others = ranks("titan")
    assert len(others) == 1, "a rank a node"
    latest = training.checkpoints("killed") / "latest_step"
    wait_until(latest.is_file, timeout_s=240, what="the first checkpoint is complete")
    victim.kill()
    training.wait(job_id, state="COMPLETED")
    assert len((training.run_dir("killed") / "starts").read_text().splitlines()) == 2
    assert losses(training.metrics("killed")) == losses(whole_run)


def test_titan_goes_on_with_another_number_of_ranks_on_the_same_sequences(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    kept = "step-000010"
    shutil.copytree(training.checkpoints("whole") / kept, training.checkpoints("fewer") / kept)
    # As many sequences a step as two ranks had.
    job_id = training.submit("fewer", "--nodes=1", GLOBAL_BATCH="8", EXPORT="no")
    training.wait(job_id, state="COMPLETED")
    rows = training.metrics("fewer")
    assert [(row["step"], row["world_size"]) for row in rows] == [(11, 1), (12, 1)]
    assert [row["loss"] for row in rows] == pytest.approx([row["loss"] for row in whole_run[10:]], rel=1e-5)


def test_a_mixture_of_experts_trains(training: Training) -> None:
    training.run("moe", MODEL="deepseek_v3", MAX_STEPS="3", EVAL_EVERY="0", EXPORT="no")
    rows = training.metrics("moe")
    assert rows[-1]["loss"] < rows[0]["loss"]


def test_chats_fine_tune_exported_weights_with_lora_and_give_weights_again(
    training: Training, weights: Path
) -> None:
    raw = training.shared / "datasets" / "titan" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    rows = [{"prompt": f"What is {n} plus {n}?", "completion": f"It is {2 * n}."} for n in range(400)]
    (raw / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    training.run("chats", TASK="sft", INIT_FROM=str(weights), LORA_RANK="4", LEARNING_RATE="3e-3")
    found = training.metrics("chats")
    assert found[-1]["loss"] < found[0]["loss"] - 0.5
    names = (training.run_dir("chats") / "export" / "model.safetensors.index.json").read_text()
    assert "lora" not in names


def test_a_run_that_diverges_ends_and_keeps_its_last_good_checkpoint(training: Training) -> None:
    check_that_divergence_ends_a_run(training)


def test_wrong_settings_end_before_the_ranks_meet(training: Training) -> None:
    for env, sentence in (
        ({"MODEL": "llama"}, "Did you mean llama3?"),
        ({"SIZE": "9B"}, "torchtitan has llama3 in 1B, 3B, 8B"),
        ({"CP": "2"}, "must be a multiple of 512"),
        ({"TP": "2"}, "TP is 2 and a node has 1 ranks"),
    ):
        job_id = training.submit("wrong", MAX_RESTARTS="0", **env)
        assert sentence in training.wait(job_id, state="FAILED")


def test_the_table_of_models_is_torchtitan_s(training: Training, whole_run: list[dict[str, Any]]) -> None:
    assert whole_run, "the first run installs the environment"
    venvs = Path(os.environ.get("TRAINING_VENVS", training.shared / "venvs"))
    python = venvs / "titan" / "bin" / "python"
    subprocess.run([python, ROOT / "tools" / "titan_models.py", "--check"], check=True)
