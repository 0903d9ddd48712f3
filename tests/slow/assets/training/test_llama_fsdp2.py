"""The llama-fsdp2 workload on two nodes of a real Slurm on this machine."""

from __future__ import annotations

import json
import shutil
import time
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

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

STEPS, SAVED_EVERY = 12, 5
SETTINGS = {"MAX_STEPS": str(STEPS), "CHECKPOINT_EVERY": str(SAVED_EVERY), "WARMUP_STEPS": "2"}
# Enough to write for a second: 17 M parameters, 200 MB a checkpoint.
BIG = {
    "LLAMA_WIDTH": "512",
    "LLAMA_HIDDEN": "2048",
    "LLAMA_LAYERS": "4",
    "BATCH_SIZE": "1",
    "CHECKPOINT_EVERY": "2",
    "MAX_STEPS": "5",
}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training_on_slurm(
        tmp_path_factory.mktemp("llama"), workload="llama-fsdp2", env=SETTINGS
    ) as training:
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> list[dict[str, Any]]:
    """The metrics of a run that nothing interrupts."""
    training.run("whole")
    return training.metrics("whole")


def latest_step(training: Training, run: str) -> int:
    """The step of a run's newest whole checkpoint."""
    file = training.checkpoints(run) / "latest_step"
    return int(file.read_text()) if file.is_file() else 0


def test_llama_trains_on_two_nodes_as_one_world_and_its_loss_falls(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    assert [row["step"] for row in whole_run] == list(range(1, STEPS + 1))
    assert {row["world_size"] for row in whole_run} == {2}
    assert whole_run[-1]["loss"] < whole_run[0]["loss"] - 0.5
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"
    assert latest_step(training, "whole") == STEPS
    log = (training.run_dir("whole") / "checkpoints.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in log]
    assert [row["step"] for row in rows] == [5, 10, STEPS]
    assert all(0 < row["checkpoint_s"] < row["whole_s"] for row in rows), "written while it trained"


def test_llama_killed_in_the_middle_starts_again_by_itself_and_gives_the_very_same_losses(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    job_id = training.submit("killed")
    training.wait_for_step(job_id, "killed", 2)
    # Found before it is time, so that the run does not end meanwhile.
    victim, *others = ranks("llama-fsdp2")
    assert len(others) == 1, "a rank a node"
    wait_until(
        lambda: latest_step(training, "killed") >= SAVED_EVERY,
        timeout_s=120,
        what="the first checkpoint is whole",
    )
    victim.kill()
    said = training.wait(job_id, state="COMPLETED")
    assert f"resuming from {training.checkpoints('killed')}/step-" in said
    assert len((training.run_dir("killed") / "starts").read_text().splitlines()) == 2
    assert losses(training.metrics("killed")) == losses(whole_run)


def test_llama_goes_on_with_another_number_of_ranks_on_the_same_sequences(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    kept = "step-000010"
    shutil.copytree(training.checkpoints("whole") / kept, training.checkpoints("fewer") / kept)
    # As many sequences a step as two ranks had.
    job_id = training.submit("fewer", "--nodes=1", GRADIENT_ACCUMULATION="2")
    said = training.wait(job_id, state="COMPLETED")
    assert f"resuming from {training.checkpoints('fewer') / kept}: 2 ranks wrote it, 1 read it" in said
    rows = training.metrics("fewer")
    assert [(row["step"], row["world_size"]) for row in rows] == [(11, 1), (12, 1)]
    assert [row["loss"] for row in rows] == pytest.approx([row["loss"] for row in whole_run[10:]], rel=1e-5)


def test_llama_gives_the_same_losses_where_each_node_has_a_whole_replica(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    said = training.run("replicas", SHARD="node", LAUNCHER="srun", MAX_STEPS="3")
    assert "M parameters over 2 x 1 ranks" in said
    rows = training.metrics("replicas")
    assert {row["world_size"] for row in rows} == {2}
    assert [row["loss"] for row in rows] == pytest.approx([row["loss"] for row in whole_run[:3]], rel=1e-5)


def test_a_save_that_is_killed_in_the_middle_leaves_no_checkpoint_and_the_run_goes_on_from_the_one_before(
    training: Training,
) -> None:
    job_id = training.submit("torn", MAX_RESTARTS="0", **BIG)
    training.wait_for_step(job_id, "torn", 1)
    victim, _ = ranks("llama-fsdp2")
    folder = training.checkpoints("torn")
    partial = folder / ".step-000004.partial"
    wait_for_data(partial, timeout_s=120)
    victim.kill()
    training.wait(job_id, state="FAILED")
    assert partial.is_dir(), "it was killed after the checkpoint was whole: this test saw nothing"
    assert not (partial / "progress.json").exists()
    assert [path.name for path in folder.glob("step-*")] == ["step-000002"]
    assert latest_step(training, "torn") == 2

    said = training.run("torn", **BIG)
    assert f"resuming from {folder / 'step-000002'}" in said
    assert [row["step"] for row in training.metrics("torn")] == list(range(1, 6))
    assert sorted(path.name for path in folder.iterdir()) == ["latest_step", "step-000004", "step-000005"]


def wait_for_data(partial: Path, *, timeout_s: float) -> None:
    """Wait until a rank has begun to write into a checkpoint; it takes a second to be whole."""
    deadline = time.monotonic() + timeout_s
    while not any(file.stat().st_size for file in partial.glob("*.distcp")):
        assert time.monotonic() < deadline, f"after {timeout_s} s: nothing in {partial}"
        time.sleep(0.002)


def test_llama_ends_at_a_loss_that_is_not_finite_before_a_checkpoint_has_it(training: Training) -> None:
    check_that_divergence_ends_a_run(training)


def test_llama_saves_when_slurm_ends_it(training: Training) -> None:
    job_id = training.submit("ended", MAX_STEPS="100000", CHECKPOINT_EVERY="100000")
    training.wait_for_step(job_id, "ended", 3)
    training.end(job_id)
    at = latest_step(training, "ended")
    assert at == len(training.metrics("ended"))
    assert (training.run_dir("ended") / "outcome").read_text() == f"stopped {at}\n"
