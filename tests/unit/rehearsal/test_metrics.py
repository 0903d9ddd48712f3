"""The rehearsal's reading of a job's metrics."""

import json
from pathlib import Path

import pytest

from rehearsal.metrics import read_metrics
from rehearsal.problems import RehearsalError


def test_a_loss_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    rows = [
        {"step": step, "loss": loss, "world_size": 2, "tokens_per_s": 1.0}
        for step, loss in ((1, 3.0), (2, None))
    ]
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(RehearsalError, match=r"The loss did not fall: 3\.000 at first, nan at last"):
        read_metrics(file, expected_world_size=2)


def test_a_row_of_a_validation_is_no_step(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "loss": 3.0, "world_size": 2, "tokens_per_s": 1.0},
        {"step": 2, "loss": 2.0, "world_size": 2, "tokens_per_s": 1.0},
        {"step": 2, "val_loss": 2.5, "val_s": 0.2},
    ]
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_metrics(file, expected_world_size=2).curve.values == (3.0, 2.0)
    file.write_text(json.dumps(rows[-1]) + "\n")
    with pytest.raises(RehearsalError, match="The job made no step"):
        read_metrics(file, expected_world_size=2)
