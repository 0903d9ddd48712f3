"""Rows of one start: what is written, and what is printed."""

import dataclasses
import json
from pathlib import Path

import pytest
from trainkit.run import metrics, settings, steps

from tests.unit.assets.training.trainkit.run.runs import a_run, row

NOT_GIVEN = {"memory_bytes", "world_size"}


def train(folder: Path, *, rank: int = 0, after: int = 0, last: int = 8) -> list[dict[str, object]]:
    run = dataclasses.replace(a_run(folder, rank=rank), peak_tflops=1e-6)
    given = settings.TrainSettings(max_steps=last, log_every=4)
    rows = steps.Steps(run=run, settings=given, after=after, device="cpu", flops_per_token=10.0)
    for step in range(after + 1, last + 1):
        rows.add(**{name: value for name, value in row(step).items() if name not in NOT_GIVEN})
    rows.add_validation(step=last, loss=1.0, seconds=2.0)
    file = run.run_dir / metrics.FILE
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def test_each_step_is_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, rank=1) == []
    assert capsys.readouterr().out == ""
    found = train(tmp_path)
    assert [each["step"] for each in found] == [*range(1, 9), 8]
    assert (found[0]["world_size"], found[0]["mfu"]) == (2, pytest.approx(1000 * 10 / (1e-6 * 1e12 * 2)))
    assert 2**20 < int(str(found[0]["memory_bytes"])) < 2**40
    assert found[-1]["val_loss"] == 1.0
    printed = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert printed == ["step 1", "step 4", "step 8", "step 8"]
    # A start behind a checkpoint removes the rows that it repeats.
    assert [each["step"] for each in train(tmp_path, after=5, last=7)] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert capsys.readouterr().out.startswith("step 6:")
