"""The same text and the same losses, in a container and outside."""

import json
from pathlib import Path

import pytest

from rehearsal.containers.compare import STEPS, compare_losses, same_text
from rehearsal.problems import RehearsalError
from training_cluster.paths import TRAINING


def metrics(file: Path, losses: list[float]) -> Path:
    rows = [{"step": step, "loss": loss} for step, loss in enumerate(losses, start=1)]
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"step": 9, "val_loss": 1.0}]))
    return file


@pytest.mark.parametrize(
    ("workload", "variable"), [("gpt2", "CORPUS"), ("bert-trainium", "CORPUS"), ("titan", "DATA")]
)
def test_both_jobs_read_the_same_text(tmp_path: Path, workload: str, variable: str) -> None:
    assert same_text(TRAINING / workload, tmp_path) == {variable: "raw", "MAX_STEPS": str(STEPS)}
    lines = (tmp_path / "raw" / "docs.jsonl").read_text().splitlines()
    assert len(lines) > 100
    assert all(json.loads(line)["text"] for line in lines)


def test_a_workload_without_text_is_not_compared(tmp_path: Path) -> None:
    assert same_text(TRAINING / "nccl-tests", tmp_path) == {}
    assert same_text(tmp_path, tmp_path) == {}


def test_the_warm_up_of_every_rehearsal_is_shorter_than_the_comparison() -> None:
    for sizes in TRAINING.glob("*/rehearsal.env"):
        for line in sizes.read_text().splitlines():
            if line.startswith("export WARMUP_STEPS="):
                assert int(line.rpartition("-")[2].strip('}"')) < STEPS, sizes


def test_a_loss_that_differs_or_is_missing_is_named(tmp_path: Path) -> None:
    outside = metrics(tmp_path / "outside", [3.0, 2.0, 1.0])
    same = compare_losses(outside, metrics(tmp_path / "inside", [3.0, 2.0, 1.0]))
    assert same == "the same 3 losses in the container as outside"
    for losses, said in (
        ([3.0, 2.5, 1.0], "2.0 and 2.5 in step 2"),
        ([3.0, 2.0], "1.0 and missing in step 3"),
        ([3.0, 2.0, 1.0, 0.5], "missing and 0.5 in step 4"),
    ):
        with pytest.raises(RehearsalError, match=said):
            compare_losses(outside, metrics(tmp_path / "inside", losses))


def test_two_trainings_without_a_loss_are_not_the_same(tmp_path: Path) -> None:
    empty = metrics(tmp_path / "empty", [])
    with pytest.raises(RehearsalError, match="has no loss"):
        compare_losses(empty, empty)
