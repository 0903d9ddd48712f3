"""The gpt2 workload on two nodes of a real Slurm on this machine."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.training import (
    NODES,
    Training,
    check_that_a_killed_run_resumes,
    check_that_each_file_has_a_sum,
    check_that_fewer_nodes_go_on,
    check_whole_run,
    in_environment,
    losses,
    training_on_slurm,
)

pytestmark = pytest.mark.slow

STEPS, SAVED_EVERY = 16, 6
SETTINGS = {
    "MAX_STEPS": str(STEPS),
    "CHECKPOINT_EVERY": str(SAVED_EVERY),
    "WARMUP_STEPS": "2",
    # Dropout draws random numbers: equal losses then show that these are restored too.
    "GPT2_DROPOUT": "0.1",
}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training_on_slurm(tmp_path_factory.mktemp("gpt2"), workload="gpt2", env=SETTINGS) as training:
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> list[dict[str, Any]]:
    """The metrics of a run that nothing interrupts."""
    training.run("whole")
    return training.metrics("whole")


def test_two_nodes_train_as_one_world(training: Training, whole_run: list[dict[str, Any]]) -> None:
    check_whole_run(training, steps=STEPS)
    assert all(row["memory_bytes"] > 1e8 for row in whole_run)
    rows = [*whole_run, *training.validations("whole")]
    assert [row["step"] for row in rows if "save_s" in row] == [SAVED_EVERY + 1, 2 * SAVED_EVERY + 1, STEPS]


def test_a_killed_run_gives_the_same_losses(
    training: Training, whole_run: list[dict[str, Any]], tmp_path: Path
) -> None:
    """It continues from the nodes' own disks."""
    with training.settings.open("a") as settings:
        settings.write(f"export SCRATCH={tmp_path}\n")
    said = check_that_a_killed_run_resumes(training, SENTINEL_EVERY="4", CHECKPOINT_LOCAL_EVERY="1")
    found = re.search(rf"\n0: resuming from {tmp_path}/checkpoints-\d+/\S+/step-(\d+)\.0/all\n", said)
    assert found, said
    begin = int(found[1]) + 1
    assert begin > SAVED_EVERY
    assert list(tmp_path.glob("checkpoints-*/*")) == [], "a run that has finished leaves none"
    assert said.count("sentinel: 2 ranks agree, compared every 4 steps\n") == said.count("sentinel:") == 2
    assert "\n0: step 1: loss " in said
    # Each start has a folder, and a folder in it for each node.
    for restart, step in ((0, 1), (1, begin)):
        (logs,) = (training.run_dir("kill") / "logs").glob(f"*-{restart}")
        assert sorted(each.name for each in logs.iterdir()) == list(NODES)
        first, other = (next((logs / name).glob("*/attempt_0/0/stdout.log")).read_text() for name in NODES)
        assert f"\nstep {step}: loss " in first
        assert "loss" not in other


def test_a_changed_bit_costs_a_checkpoint(
    training: Training, whole_run: list[dict[str, Any]], tmp_path: Path
) -> None:
    check_that_each_file_has_a_sum(training, tmp_path)


def test_a_resume_has_its_own_settings(training: Training, whole_run: list[dict[str, Any]]) -> None:
    kept = f"step-{2 * SAVED_EVERY:06d}"
    shutil.copytree(training.checkpoints("whole") / kept, training.checkpoints("decayed") / kept)
    given = {"WEIGHT_DECAY": "0.3", "LEARNING_RATE": "1e-4", "GLOBAL_BATCH": "16", "MAX_RESTARTS": "0"}
    said = training.wait(training.submit("decayed", "--nodes=1", **given), state="COMPLETED")
    assert "\n0: GLOBAL_BATCH 32 -> 16 from step 13\n" in said
    assert "\n0: WEIGHT_DECAY 0.1 -> 0.3 from step 13\n" in said
    assert "\n0: LEARNING_RATE 0.004 -> 0.0001 from step 13\n" in said
    assert training.metrics("decayed")[0]["learning_rate"] <= 1e-4


def test_fewer_nodes_train_the_same_batches(training: Training, whole_run: list[dict[str, Any]]) -> None:
    said = check_that_fewer_nodes_go_on(training, f"step-{2 * SAVED_EVERY:06d}", GPT2_DROPOUT="0")
    assert "\n0: GRADIENT_ACCUMULATION is 2, not 1: a step has 32 sequences (GLOBAL_BATCH)\n" in said


def test_a_validation_is_the_same_for_any_ranks(training: Training, whole_run: list[dict[str, Any]]) -> None:
    weights = str(training.checkpoints("whole") / f"step-{STEPS:06d}")
    given = {"INIT_FROM": weights, "MAX_STEPS": "0", "EVAL_SEQUENCES": "19"}
    for run, nodes, seed, batch in (("one", 1, "1", "4"), ("two", 2, "2", "3")):
        job = training.submit(run, f"--nodes={nodes}", SEED=seed, BATCH_SIZE=batch, **given)
        training.wait(job, state="COMPLETED")
    (one,), (two,) = (training.validations(run) for run in ("one", "two"))
    assert one["val_loss"] == pytest.approx(two["val_loss"], rel=1e-6)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_torch_of_nodes_gives_the_same_losses(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    requirements = training.shared / "training" / "gpt2" / "requirements.txt"
    for_rehearsals = requirements.read_text()
    # Its build for CUDA then trains on CPUs, in an environment beside the other one.
    requirements.write_text(re.sub("# Rehearsals: .*\n", "", for_rehearsals))
    training.run("nodes")
    requirements.write_text(for_rehearsals)
    venvs = Path(os.environ.get("TRAINING_VENVS", training.shared / "venvs"))
    torches = venvs.glob("gpt2-????????/lib/*/site-packages/torch-*.dist-info")
    assert [each.name for each in torches] == ["torch-2.14.1.dist-info"]
    assert losses(training.metrics("nodes")) == losses(whole_run)


@pytest.mark.nightly
def test_compiled_gpt2_takes_no_mask_returns_a_loss() -> None:
    found = json.loads(in_environment("gpt2", "gpt2_graph.py"))
    for start in ("scratch", "weights"):
        compiled = found[start]
        assert (compiled["attention"], compiled["causal"], compiled["masks"]) == (2, 2, 0)
        assert (compiled["graphs"], compiled["outputs"]) == (1, [[]])
        assert (compiled["loss"], compiled["norm"]) == (found["plain"]["loss"], found["plain"]["norm"])


@pytest.fixture(scope="module")
def scenes() -> dict[str, dict[str, Any]]:
    """Runs of eight steps, in which an update that reads a number of the device fails."""
    found: dict[str, dict[str, Any]] = json.loads(in_environment("gpt2", "gpt2_update.py"))
    return found


def order(scene: dict[str, Any]) -> str:
    """Return what happened: g3 is step 3 given to the device, r3 its numbers read, s3 a checkpoint of it."""
    return " ".join(f"{kind[0]}{step}" for kind, step in scene["events"])


def test_steps_are_read_one_behind_but_saved_whole(scenes: dict[str, dict[str, Any]]) -> None:
    whole = scenes["whole"]
    assert order(whole) == "g1 r1 g2 r2 g3 g4 r3 g5 r4 g6 r5 g7 r6 g8 r7 r8 s8"
    assert order(scenes["slow"]) == "g1 r1 g2 r2 g3 r3 g4 r4 g5 r5 g6 r6 g7 r7 g8 r8 s8"
    # A step begins where the one before ended if that one is unread: no second counts twice or is left out.
    assert [(row["step"], row["step_s"]) for row in whole["rows"]] == [
        *((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)),
        *((step, 1.25) for step in range(5, 9)),
    ]
    assert order(scenes["saved"]) == "g1 r1 g2 r2 g3 g4 r3 g5 r4 g6 r5 r6 s6 g7 g8 r7 r8 s8"
    assert order(scenes["stopped"]).endswith("g5 r4 g6 r5 r6 s6")
    assert scenes["stopped"]["stopped_at"] == 6
    assert order(scenes["diverged"]).endswith("g5 r4 g6 r5")
    assert "step 5: the loss is nan" in scenes["diverged"]["ended"]
    assert scenes["diverged"]["rows"][-1]["loss"] is None


def test_an_update_waits_for_the_copy(scenes: dict[str, dict[str, Any]]) -> None:
    assert scenes["copied"] == {"copied": True, "updated": True}


def test_a_failed_local_copy_ends_local_saves(scenes: dict[str, dict[str, Any]]) -> None:
    assert scenes["without local copy"] == {"local_steps": [1]}


def test_weights_of_another_run_start_a_run(training: Training, whole_run: list[dict[str, Any]]) -> None:
    weights = training.checkpoints("whole") / f"step-{STEPS:06d}"
    job_id = training.submit("tuned", "--nodes=1", INIT_FROM=str(weights), MAX_STEPS="2")
    said = training.wait(job_id, state="COMPLETED")
    assert f"data: {training.shared}/datasets/gpt2/machine-vocab-2048 is there" in said
    assert f"parameters from {weights}" in said
    assert training.metrics("tuned")[0]["loss"] < whole_run[0]["loss"] - 0.5


def test_other_data_or_one_rank_are_refused(scenes: dict[str, dict[str, Any]]) -> None:
    ended, checkpoint = scenes["other data"]["ended"], f"{scenes['other data']['folder']}/step-000004"
    assert f"{checkpoint} was trained on other data than" in ended
    assert f"(INIT_FROM={checkpoint})" in ended
    sentence = "the world size is 1 and EXPECTED_WORLD_SIZE is 2, so nodes would train alone"
    assert sentence in scenes["alone"]["ended"]
