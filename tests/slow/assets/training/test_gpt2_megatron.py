"""The gpt2-megatron workload on two nodes of a real Slurm, with the rehearsal's shim for CPUs."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.training import (
    PROGRAMS,
    Training,
    check_that_a_killed_run_resumes,
    check_that_divergence_ends_a_run,
    check_whole_run,
    hooked,
    in_environment,
    training_on_slurm,
)
from training_cluster.paths import ROOT, TRAINING

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

SHIMS = ROOT / "rehearsal" / "shims"
STEPS, SAVED_EVERY = 8, 3
SETTINGS = {
    "MAX_STEPS": str(STEPS),
    "CHECKPOINT_EVERY": str(SAVED_EVERY),
    "WARMUP_STEPS": "2",
    "GLOBAL_BATCH_SIZE": "16",
    "EVAL_SEQUENCES": "1",
    "PYTHONPATH": str(SHIMS),
}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("megatron")
    with training_on_slurm(folder, workload="gpt2-megatron", env=SETTINGS) as training:
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> list[dict[str, Any]]:
    """The metrics of a data parallel run that nothing interrupts, with dropout, which has to come again."""
    training.run("whole", GPT2_DROPOUT="0.1")
    return training.metrics("whole")


def test_two_nodes_train_as_one_world(training: Training, whole_run: list[dict[str, Any]]) -> None:
    check_whole_run(training, steps=STEPS)


def test_a_killed_run_gives_the_same_losses(training: Training, whole_run: list[dict[str, Any]]) -> None:
    check_that_a_killed_run_resumes(training, GPT2_DROPOUT="0.1")


def test_a_resume_has_its_own_settings(training: Training, whole_run: list[dict[str, Any]]) -> None:
    kept = f"step-{2 * SAVED_EVERY:06d}"
    shutil.copytree(training.checkpoints("whole") / kept, training.checkpoints("slower") / kept)
    said = training.run("slower", LEARNING_RATE="1e-6", MIN_LEARNING_RATE="1e-7", EVAL_SEQUENCES="0")
    assert "\n0: LEARNING_RATE 0.004 -> 1e-06 from step 7\n" in said
    assert max(row["learning_rate"] for row in training.metrics("slower")) <= 1e-6


def test_a_run_that_diverges_ends(training: Training) -> None:
    check_that_divergence_ends_a_run(training)


@pytest.fixture(scope="module")
def shared_runs(training: Training, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Train on one rank, and on two that share the model by its tensors or by its layers."""
    training.wait(training.submit("alone", "--nodes=1", MAX_STEPS="4"), state="COMPLETED")
    hooks = hooked(tmp_path_factory.mktemp("hooks"), SHIMS / "sitecustomize.py")
    training.run("tensor", MAX_STEPS="4", TENSOR_PARALLEL="2", PYTHONPATH=hooks)
    training.run("pipeline", MAX_STEPS="4", PIPELINE_PARALLEL="2")


@pytest.mark.usefixtures("shared_runs")
def test_shared_models_learn_as_one_rank(training: Training) -> None:
    """Tensor parallel ranks begin with the weights of one rank alone; sums are added in another order."""
    alone, tensor, pipeline = (
        [row["loss"] for row in training.metrics(run)] for run in ("alone", "tensor", "pipeline")
    )
    assert {row["world_size"] for row in training.metrics("tensor")} == {2}
    assert {row["world_size"] for row in training.metrics("pipeline")} == {2}
    assert tensor == pytest.approx(alone, abs=2e-3)
    # Stages draw their weights apart, so it is another model.
    assert pipeline[-1] < pipeline[0]
    assert pipeline == pytest.approx(alone, abs=0.3)


@pytest.mark.usefixtures("shared_runs")
def test_each_rank_flushes_its_own_piece(training: Training) -> None:
    pieces = [each for each in training.flushed("tensor", 1) if each.endswith(".pt")]
    assert pieces == [f"{step}/tensor-01-pipeline-00.pt" for step in (SAVED_EVERY, 4)]
    assert {f"4/tensor-{rank:02d}-pipeline-00.pt" for rank in range(2)} < set(training.flushed("tensor", 0))


@pytest.mark.usefixtures("whole_run", "shared_runs")
def test_a_checkpoint_becomes_a_model_of_transformers(training: Training, tmp_path: Path) -> None:
    """The logits are Megatron's own; a shared model has the weights of one rank, which learnt the same."""
    logits = tmp_path / "logits.npz"
    weights = training.shared / "whole"
    last = training.checkpoints("whole") / f"step-{STEPS:06d}"
    run_program(training, "megatron_logits.py", str(last), str(logits))
    exported(training, "whole", weights)
    found = in_environment("gpt2", "transformers_logits.py", str(weights), str(logits))
    assert float(found.splitlines()[-1]) <= 1e-5
    assert (weights / "tokenizer.json").is_file()
    for run in ("alone", "tensor", "pipeline"):
        exported(training, run, tmp_path / run)
    compared = in_environment(
        "gpt2", "same_weights.py", str(tmp_path / "alone"), str(tmp_path / "tensor"), "0.02"
    )
    assert compared.splitlines()[-1] == "equal"
    names = in_environment(
        "gpt2", "same_weights.py", str(tmp_path / "alone"), str(tmp_path / "pipeline"), "9"
    )
    assert names.splitlines()[-1] == "equal", "all layers are there, with their sizes"


def test_data_files_equal_those_of_megatrons_builder(
    training: Training, whole_run: object, tmp_path: Path
) -> None:
    script = Path(__file__).parent / "trainkit" / "data" / "megatron_files.py"
    done = subprocess.run(
        [training.python, "-B", script, tmp_path],
        env=os.environ | {"PYTHONPATH": f"{TRAINING}:{TRAINING / 'gpt2-megatron'}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("equal\n"), done.stderr


def exported(training: Training, run: str, to: Path) -> None:
    """Export the newest checkpoint of a run by a job of its own on one node."""
    job_id = training.submit(f"{run}-export", "--nodes=1", EXPORT_RUN=run, EXPORT_TO=str(to))
    training.wait(job_id, state="COMPLETED")


# The format of 2019, written by hand: what weights.py has to undo.
TO_OLD_FORMAT = """
import argparse, sys, torch
model = torch.load(sys.argv[1], map_location="cpu", weights_only=False)["model"]
old = {"input_layernorm": "input_layernorm", "pre_mlp_layernorm": "post_attention_layernorm",
       "self_attention.linear_qkv": "attention.query_key_value",
       "self_attention.linear_proj": "attention.dense",
       "mlp.linear_fc1": "mlp.dense_h_to_4h", "mlp.linear_fc2": "mlp.dense_4h_to_h"}
layers = {f"final_layernorm.{kind}": model[f"decoder.final_layernorm.{kind}"] for kind in ("weight", "bias")}
for layer in range(2):
    for name, theirs in old.items():
        for kind in ("weight", "bias"):
            rows = model[f"decoder.layers.{layer}.{name}.{kind}"]
            if "qkv" in name:
                heads = rows.view(4, 3, 32, *rows.shape[1:])
                rows = torch.stack([heads[:, part] for part in range(3)]).reshape(rows.shape)
            layers[f"layers.{layer}.{theirs}.{kind}"] = rows
names = ("word_embeddings", "position_embeddings")
embedding = {name: {"weight": model[f"embedding.{name}.weight"]} for name in names}
whole = {"model": {"language_model": {"embedding": embedding, "transformer": layers}},
         "args": argparse.Namespace(num_layers=2), "iteration": 8}
torch.save(whole, sys.argv[2])
"""


def test_weights_of_nvidias_old_format_start_a_run(
    training: Training, whole_run: list[dict[str, Any]], tmp_path: Path
) -> None:
    trained = training.checkpoints("whole") / f"step-{STEPS:06d}" / "tensor-00-pipeline-00.pt"
    weights = tmp_path / "model_optim_rng.pt"
    subprocess.run([training.python, "-B", "-c", TO_OLD_FORMAT, trained, weights], check=True)
    for run, shared in {"begun": {}, "begun-tensor": {"TENSOR_PARALLEL": "2"}}.items():
        training.run(run, INIT_FROM=str(weights), MAX_STEPS="1", **shared)
    begun, tensor = (training.metrics(run)[0]["loss"] for run in ("begun", "begun-tensor"))
    # The first step's own samples, after eight steps of learning.
    assert begun < whole_run[0]["loss"] - 0.5
    assert tensor == pytest.approx(begun, abs=2e-3)


def run_program(training: Training, name: str, *arguments: str) -> str:
    """Run a program of the tests in the workload's environment, with the shim for CPUs; return its output."""
    paths = f"{SHIMS}:{TRAINING}:{TRAINING / 'gpt2-megatron'}"
    done = subprocess.run(
        [str(training.python), "-B", str(PROGRAMS / name), *arguments],
        env=os.environ | {"PYTHONPATH": paths, "TRAINING_REHEARSAL": "1", "TORCHDYNAMO_DISABLE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
