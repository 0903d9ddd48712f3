"""The titan workload on two nodes of a real Slurm on this machine."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.slow.assets.training.titan.runs import (  # noqa: F401 (fixtures)
    SAVED_EVERY,
    STEPS,
    train_on_one_node,
    training,
    weights,
    whole_run,
)
from tests.slow.assets.training.training import (
    Training,
    check_that_a_killed_run_resumes,
    check_that_divergence_ends_a_run,
    check_that_each_file_has_a_sum,
    check_whole_run,
    in_environment,
    losses,
)
from tests.unit.assets.training.trainkit.data.hub_server import hub_server
from training_cluster.paths import ROOT

# ruff: noqa: F811 (fixtures are arguments)

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

RECIPES = """
from torchtitan.models.llama3.config_registry import llama3_debugmodel

def tiny():
    recipe = llama3_debugmodel()
    recipe.model_spec.flavor = "mine"
    return recipe

def number():
    return 7
"""
CARD = """---
configs:
- config_name: english
  data_files:
  - split: train
    path: en/train-*
  - split: test
    path: en/test-*
- config_name: french
  data_files: fr/*.jsonl
---
"""
# Saves as on GPUs, but for the kind of memory.
IN_THE_BACKGROUND = ("--", "--checkpoint.async-mode", "async_with_pinned_mem")
LITTLE_MEMORY = """
import os
known = os.sysconf
os.sysconf = lambda name: 16 if name == "SC_PHYS_PAGES" else known(name)
"""
# A recipe has its own schedule.
RECIPE = {"CONFIG": "my_recipes:tiny", "WARMUP_STEPS": ""}


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    """A folder with a module of recipes, for CONFIG."""
    (tmp_path / "my_recipes.py").write_text(RECIPES)
    return tmp_path


def texts(training: Training, *names: str) -> list[Path]:
    """Write a folder of some documents for each name, whose words are its own."""
    draw = Random(1)
    folders = [training.shared / "datasets" / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True)
        rows = [
            json.dumps({"text": " ".join(f"{folder.name}{draw.randrange(300)}" for _ in range(120))})
            for _ in range(400)
        ]
        (folder / "a.jsonl").write_text("\n".join(rows) + "\n")
    return folders


def test_two_nodes_train_as_one_world(training: Training, whole_run: list[dict[str, Any]]) -> None:
    check_whole_run(training, steps=STEPS)
    first, last = training.validations("whole")
    assert (first["step"], last["step"]) == (6, 12)
    assert last["val_loss"] < first["val_loss"]


def test_a_save_takes_time_of_no_step(training: Training, whole_run: list[dict[str, Any]]) -> None:
    assert training.flushed("whole", 0), "a flush takes an hour"
    assert all(row["step_s"] < 3600 for row in whole_run)
    validations = training.validations("whole")
    assert all(row["val_s"] < 3600 for row in validations)
    waited = {row["step"]: row["save_s"] for row in [*whole_run, *validations] if "save_s" in row}
    assert list(waited) == [SAVED_EVERY + 1, 2 * SAVED_EVERY + 1, STEPS]
    assert min(waited.values()) > 0


def test_mfu_counts_attention_within_documents() -> None:
    found = json.loads(in_environment("titan", "titan_mfu.py").splitlines()[-1])
    assert found.pop("none") is None, "the whole sequence counts where no document is known"
    assert found == pytest.approx(dict.fromkeys(found, 1.0))


def test_an_own_recipe_trains_with_options(training: Training, recipes: Path) -> None:
    mine = RECIPE | {"PYTHONPATH": str(recipes)}
    options = (*IN_THE_BACKGROUND, "--metrics.save-tb-folder", "curves")
    (recipes / "sitecustomize.py").write_text(LITTLE_MEMORY)
    job_id = training.submit("recipe", arguments=options, **mine)
    said = training.wait(job_id, state="COMPLETED")
    assert "more than 50% of its 0.0 GB of memory. Nothing is pinned" in said
    rows = training.metrics("recipe")
    assert rows[-1]["loss"] < rows[0]["loss"]
    # The rate of the recipe, in place of LEARNING_RATE.
    assert max(row["learning_rate"] for row in rows) == pytest.approx(8e-4)
    assert list((training.run_dir("recipe") / "curves").rglob("events*"))
    assert not (training.run_dir("recipe") / "tb").exists()
    config = json.loads((training.run_dir("recipe") / "export" / "config.json").read_text())
    assert (config["hidden_size"], config["max_position_embeddings"]) == (256, 131_072)
    kept = training.checkpoints("recipe")
    assert sorted(path.name for path in kept.glob("step-*")) == ["step-000010", "step-000012"], said


def test_a_stop_waits_for_a_background_save(training: Training) -> None:
    slow = {"MAX_STEPS": "500", "CHECKPOINT_EVERY": "400", "EVAL_EVERY": "0"}
    job_id = training.submit("stopped", arguments=IN_THE_BACKGROUND, **slow)
    training.wait_for_step(job_id, "stopped", 3, timeout_s=600)
    assert "Nothing is pinned" not in training.end(job_id)
    stopped = (training.run_dir("stopped") / "outcome").read_text().split()
    assert stopped[0] == "stopped"
    checkpoints = training.checkpoints("stopped")
    assert [path.name for path in checkpoints.glob("step-*")] == [f"step-{int(stopped[1]):06d}"]
    assert not list(checkpoints.glob(".*partial"))


@pytest.mark.parametrize(
    ("config", "options", "sentence"),
    [
        ("my_recipes:gone", (), "has no attribute 'gone'): give PACKAGE:FUNCTION of a module"),
        ("their_recipes:tiny", (), "No module named 'their_recipes'): give PACKAGE:FUNCTION"),
        ("my_recipes:number", (), "returned int: give a function that returns a Trainer.Config"),
        ("torchtitan.models.qwen3_5.config_registry:qwen35_2b", (), "imports the Python module fla, which"),
        ("", ("--", "--training.max-nrm", "1"), "--training.max-norm"),
    ],
)
def test_wrong_recipes_end_before_the_ranks_start(
    training: Training, recipes: Path, config: str, options: tuple[str, ...], sentence: str
) -> None:
    run = recipes.name
    wrong = RECIPE | {"CONFIG": config, "PYTHONPATH": str(recipes), "MAX_RESTARTS": "0"}
    job_id = training.submit(run, arguments=options, **wrong)
    assert sentence in training.wait(job_id, state="FAILED")
    assert not (training.run_dir(run) / "starts").exists()


def test_a_mixture_resumes_on_fewer_ranks(training: Training) -> None:
    texts(training, "alpha", "beta")
    mixed = {"DATA": "alpha:0.7,beta:0.3", "CHECKPOINT_EVERY": "3", "EVAL_EVERY": "0", "EXPORT": "no"}
    training.run("mixed", MAX_STEPS="6", PROFILE_STEPS="2-3", **mixed)
    rows = training.metrics("mixed")
    traces = training.run_dir("mixed") / "profiling" / "traces"
    assert [path.name for path in sorted(traces.glob("*/*"))] == [
        "rank0_trace.json.gz",
        "rank1_trace.json.gz",
    ]
    kept = "step-000003"
    shutil.copytree(training.checkpoints("mixed") / kept, training.checkpoints("mixed-fewer") / kept)
    job_id = training.submit("mixed-fewer", "--nodes=1", MAX_STEPS="6", GLOBAL_BATCH="8", **mixed)
    training.wait(job_id, state="COMPLETED")
    fewer = training.metrics("mixed-fewer")
    assert [row["step"] for row in fewer] == [4, 5, 6]
    assert [row["loss"] for row in fewer] == pytest.approx([row["loss"] for row in rows[3:]], rel=1e-5)
    shutil.copytree(training.checkpoints("mixed") / kept, training.checkpoints("mixed-other") / kept)
    other = mixed | {"DATA": "alpha:0.5,beta:0.5", "MAX_RESTARTS": "0"}
    said = training.wait(training.submit("mixed-other", MAX_STEPS="6", **other), state="FAILED")
    assert "give the same DATA, or another RUN_NAME" in said


def test_a_stream_resumes_on_as_many_ranks(training: Training, weights: Path, tmp_path: Path) -> None:
    (folder,) = texts(training, "stream")
    (folder / "a.jsonl").rename(folder / "train.jsonl")
    shutil.copyfile(folder / "train.jsonl", folder / "validation.jsonl")
    stream = {
        **{"DATA": f"hf:{folder}", "TOKENIZER": str(weights), "EXPORT": "no", "CHECKPOINT_EVERY": "2"},
        **{"EVAL_EVERY": "0", "MAX_STEPS": "4"},
    }
    mlflow = {
        "LOGGER": "mlflow",
        "MLFLOW_TRACKING_URI": f"file://{tmp_path}/mlflow",
        "MLFLOW_ALLOW_FILE_STORE": "1",
    }
    training.run("stream", **stream, **mlflow)
    rows = training.metrics("stream")
    assert training.validations("stream")
    assert (training.run_dir("stream") / "mlflow_run").read_text().strip()
    kept = "step-000002"
    for run in ("stream-resumed", "stream-fewer"):
        shutil.copytree(training.checkpoints("stream") / kept, training.checkpoints(run) / kept)
    training.run("stream-resumed", **stream, LOGGER="wandb", WANDB_MODE="offline")
    assert losses(training.metrics("stream-resumed")) == losses(rows[2:])
    assert list(training.run_dir("stream-resumed").glob("tb/*/wandb/offline-run-*"))
    job_id = training.submit("stream-fewer", "--nodes=1", MAX_RESTARTS="0", **stream)
    said = training.wait(job_id, state="FAILED")
    assert "was written by another number of data-parallel ranks" in said
    # An earlier version read streams without processes of their own.
    no_processes = ("--", "--dataloader.num-workers", "0")
    former = stream | {"MAX_STEPS": "2"}
    training.wait(training.submit("stream-former", arguments=no_processes, **former), state="COMPLETED")
    said = training.wait(training.submit("stream-former", MAX_RESTARTS="0", **stream), state="FAILED")
    assert "is of a version that read streams in the order of their files" in said
    assert "AssertionError:" not in said  # torchrun has a traceback of its own


def test_a_hub_data_set_has_its_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "hub" / "datasets" / "org" / "texts"
    for name in (
        "README.md",
        "en/train-0.jsonl.gz",
        "en/train-1.jsonl.gz",
        "en/test-0.jsonl.gz",
        "fr/a.jsonl",
    ):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(CARD if name == "README.md" else "{}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with hub_server(tmp_path / "hub") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        found = [
            json.loads(in_environment("titan", "titan_hub.py", name, str(tmp_path)).splitlines()[-1])
            for name in ("org/texts/english", "org/texts/french")
        ]
    assert found == [
        [["en/train-0.jsonl.gz", "train"], ["en/train-1.jsonl.gz", "train"], ["en/test-0.jsonl.gz", "val"]],
        [["fr/a.jsonl", ""]],
    ]


def test_a_killed_run_gives_the_same_losses(training: Training, whole_run: list[dict[str, Any]]) -> None:
    check_that_a_killed_run_resumes(training)


def test_a_lost_nodes_part_comes_from_its_neighbour(
    training: Training, whole_run: list[dict[str, Any]], tmp_path: Path
) -> None:
    with training.settings.open("a") as settings:
        settings.write(f"export SCRATCH={tmp_path}\n")
    proof = training.proof(CHECKPOINT_LOCAL_EVERY="1")
    row = proof.run("node")
    assert (row.problem, row.losses) == ("", "equal")
    said = training.output(proof.job_id)
    other, spare = "train-dy-p4d-1", "train-dy-p4d-3"
    assert f"; {spare} got rank-00001-of-00002 from {other}\n" in said
    found = re.search(rf"\n0: resuming from {tmp_path}/\S+/step-(\d+)\.0/rank-00000-of-00002\n", said)
    assert found, said
    assert int(found[1]) == row.resumed_from


def test_fewer_ranks_train_on_the_same_sequences(training: Training, whole_run: list[dict[str, Any]]) -> None:
    kept, noted = "step-000010", "titan.json"
    shutil.copytree(training.checkpoints("whole") / kept, training.checkpoints("fewer") / kept)
    training.run_dir("fewer").mkdir(parents=True)
    shutil.copyfile(training.run_dir("whole") / noted, training.run_dir("fewer") / noted)
    job_id = training.submit("fewer", "--nodes=1", EXPORT="no")
    said = training.wait(job_id, state="COMPLETED")
    assert "GLOBAL_BATCH=8: the value of the run so far" in said
    rows = training.metrics("fewer")
    assert [(row["step"], row["world_size"]) for row in rows] == [(11, 1), (12, 1)]
    assert [row["tokens"] for row in rows] == [row["tokens"] for row in whole_run[10:]]
    assert [row["loss"] for row in rows] == pytest.approx([row["loss"] for row in whole_run[10:]], rel=1e-5)


def test_a_changed_bit_costs_a_checkpoint(
    training: Training, whole_run: list[dict[str, Any]], tmp_path: Path
) -> None:
    check_that_each_file_has_a_sum(training, tmp_path)


def test_a_resume_steps_with_own_learning_rate(training: Training, whole_run: list[dict[str, Any]]) -> None:
    kept = training.checkpoints("whole") / "step-000010"
    label = json.loads((kept / "checkpoint.json").read_text())
    assert set(label["sums"]) == set(label["files"]) > {"__0_0.distcp", "__1_0.distcp"}
    shutil.copytree(kept, training.checkpoints("still") / kept.name)
    said = training.run("still", LEARNING_RATE="1e-30", MAX_STEPS="11", EVAL_EVERY="0")
    assert "\n0: LEARNING_RATE 0.001 -> 1e-30 from step 11\n" in said
    before = training.shared / "before"
    training.run("before", EXPORT_RUN="whole", EXPORT_STEP="10", EXPORT_TO=str(before))
    after = training.run_dir("still") / "export"
    assert in_environment("titan", "same_weights.py", str(before), str(after)).strip() == "equal"


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        ("llama3", {"CP": "2", "SEQ_LEN": "512"}),
        ("llama3", {"TP": "2"}),
        ("qwen3", {"TP": "2", "ACTIVATION_CHECKPOINTING": "none"}),
        ("deepseek_v3", {"EP": "2"}),
        ("gpt_oss", {"EP": "2", "ACTIVATION_CHECKPOINTING": "full", "MAX_STEPS": "4"}),
    ],
)
def test_a_model_trains_in_each_layout(training: Training, model: str, layout: dict[str, str]) -> None:
    run = "-".join([model, *list(layout)[:2]])
    short = {
        "MAX_STEPS": "6",
        "LEARNING_RATE": "1e-3",
        "EVAL_SEQUENCES": "2",
        "EVAL_EVERY": "3",
        "EXPORT": "no",
    }
    train_on_one_node(training, run, ranks=2, MODEL=model, **short | layout)
    rows = training.metrics(run)
    assert (len(rows), {row["world_size"] for row in rows}) == (int(layout.get("MAX_STEPS", 6)), {2})
    assert rows[-1]["loss"] < rows[0]["loss"]


# The first steps overshoot. gpt_oss computes in bf16, which takes CPUs half a minute a step.
@pytest.mark.parametrize(("model", "steps"), [("deepseek_v3", "10"), ("gpt_oss", "6")])
def test_a_mixture_of_experts_trains(training: Training, model: str, steps: str) -> None:
    export = "yes" if model == "deepseek_v3" else "no"
    said = training.run(f"moe-{model}", MODEL=model, MAX_STEPS=steps, EVAL_EVERY="0", EXPORT=export)
    assert ("will have no config.json" in said.partition("step 1:")[0]) == (export == "yes")
    rows = training.metrics(f"moe-{model}")
    assert rows[-1]["loss"] < rows[0]["loss"]


def test_a_run_that_diverges_ends(training: Training) -> None:
    check_that_divergence_ends_a_run(training)


def test_the_table_of_models_is_torchtitan_s(training: Training, whole_run: list[dict[str, Any]]) -> None:
    assert whole_run, "the first run installs the environment"
    subprocess.run([training.python, "-m", "tools.titan_models", "--check"], cwd=ROOT, check=True)
