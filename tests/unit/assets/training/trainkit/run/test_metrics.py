"""Metrics of a run: rows in flat memory, with damaged ones left out and counted by every reader."""

import json
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from trainkit.run import metrics, report, run_record

from ops.report.record import unpack
from ops.report.tables import warnings_of
from tests.unit.assets.training.trainkit.run.runs import row

MANY, MOST_BYTES = 10_000, 4_000_000


def test_a_resume_removes_repeated_and_torn_rows(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    first = metrics.Metrics(file, after_step=0)
    for step in range(1, 6):
        first.add(**row(step))
    with file.open("a") as torn:
        torn.write('{"step": 6, "lo')
    again = metrics.Metrics(file, after_step=3)
    first.add(**row(6))  # of ranks that are left
    line = again.add(**row(4, loss=1.5, mfu=0.415, grad_norm=0.25))
    rows = metrics.Rows(file)
    assert [each["step"] for each in rows] == [1, 2, 3, 4]
    assert [(each.get("mfu"), each.get("grad_norm")) for each in list(rows)[2:]] == [
        (None, None),
        (0.415, 0.25),
    ]
    assert rows.damaged == 0, "no loss, since it is repeated"
    start, _, rest = line.partition(", 4,000 tokens/s, ")
    assert start == "step 4: loss 1.5000, gradient norm 0.25"
    assert rest.startswith("MFU 41.5%, 0.100 s a step (10% data), 1.0")
    assert metrics.summary_of(file) == "step 4, first loss 8.0000, last loss 1.5000"


def test_rows_are_json_whatever_their_numbers(tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    file = tmp_path / "metrics.jsonl"
    # A row as older versions wrote it.
    file.write_text(json.dumps(row(1, loss=math.nan)) + "\n")
    assert "NaN" in file.read_text()
    written = metrics.Metrics(file, after_step=1)
    assert "loss nan" in written.add(**row(2, loss=math.nan))
    assert "loss inf" in written.add(**row(3, loss=math.inf, mfu=-math.inf))
    rows = [json.loads(line, parse_constant=refuse) for line in file.read_text().splitlines()]
    assert [(each["step"], each["loss"]) for each in rows] == [(1, None), (2, None), (3, None)]
    assert rows[2]["mfu"] is None
    assert metrics.summary_of(file) == "step 3, first loss not a number, last loss not a number"


DAMAGE = {
    "a hole of NULs": bytes(5000),
    "a hole without an end": bytes(200_000),
    "half a line": b'{"step": 3, "lo',
    "another encoding": '{"step": 3, "loss": 1.0, "what": "\xe4"}'.encode("latin-1"),
    "UTF-16": '{"step": 3, "loss": 1.0}'.encode("utf-16"),
    "a list": b"[3]",
    "a number": b"3",
    "no step": b'{"loss": 1.0}',
    "a step that is not a number": b'{"step": "3"}',
    "a loss that is not a number": b'{"step": 3, "loss": "low"}',
    "a number that no float holds": b'{"step": 3, "loss": 1' + b"0" * 400 + b"}",
    "a time that is none": b'{"step": 3, "time": "yesterday"}',
    "brackets without an end": b"[" * 50_000,
}
LOST_STARTS = 4


@pytest.fixture
def damaged_run(tmp_path: Path) -> Path:
    """A run of the steps 1, 2 and 4, with every kind of damage between 2 and 4."""
    run_dir = tmp_path / "runs" / "gpt2" / "mine"
    run_dir.mkdir(parents=True)
    good = [json.dumps(row(step)).encode() for step in (1, 2, 4)]
    (run_dir / metrics.FILE).write_bytes(b"\n".join([*good[:2], *DAMAGE.values(), good[2]]) + b"\n")
    (run_dir / "starts").write_bytes(
        b"0 0 2026-03-02T09:00:00Z n-1 7\n"
        + bytes(40)
        + b"\nx 0 2026-03-02T09:00:00Z n-1 7\n1 4 soon n-1 7\n"
    )
    (run_dir / "ends").write_bytes(b"7 0 2026-03-02T09:10:00Z 0\n7 1 20\n")
    return run_dir


def test_readers_skip_damaged_rows_and_count_them(
    damaged_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_report() -> int:
        summary = report.summarize(damaged_run)
        said = report.render(summary, [])
        assert said.startswith("report: 4 steps, loss 8.0000 -> 2.0000")
        assert said.endswith(f"restarts: 0, {summary['damaged_rows']} damaged rows skipped")
        return int(summary["damaged_rows"]) - LOST_STARTS

    file = damaged_run / metrics.FILE
    rows = metrics.Rows(file)
    assert [each["step"] for each in rows] == [1, 2, 4]
    assert rows.damaged == of_report() == len(DAMAGE)
    record, reading = run_record.read_run(damaged_run, None)
    run = unpack(run_record.pack(record, reading.buckets, points=20))
    assert (run.rows, run.start_count, run.exit_code) == (3, 1, 0)
    assert run.damaged_rows == len(DAMAGE) + LOST_STARTS
    warning = f"Damaged rows of metrics, starts and ends that were skipped: {run.damaged_rows}."
    assert warning in warnings_of(run)
    metrics.Metrics(file, after_step=4)
    assert f"{file}: {len(DAMAGE)} damaged rows skipped" in capsys.readouterr().out
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [1, 2, 4]
    assert of_report() == len(DAMAGE)
    metrics.Metrics(file, after_step=4)
    assert of_report() == len(DAMAGE), "a second resume counts none twice"
    file.write_bytes(bytes(100))
    (damaged_run / "starts").unlink()
    (damaged_run / "ends").unlink()
    assert report.render(report.summarize(damaged_run), []).startswith("report: the run wrote no metrics, ")


def resume(run_dir: Path) -> int:
    metrics.Metrics(run_dir / metrics.FILE, after_step=MANY)
    return MANY


def summarize(run_dir: Path) -> int:
    return int(metrics.summary_of(run_dir / metrics.FILE).split()[1].rstrip(","))


def record(run_dir: Path) -> int:
    return int(run_record.read_run(run_dir, None)[0]["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("read", [resume, summarize, record])
def test_many_rows_are_read_in_flat_memory(tmp_path: Path, read: Callable[[Path], int]) -> None:
    line = json.dumps(row(1, time="2026-03-02T09:00:00+00:00"))
    lines = (line.replace('"step": 1,', f'"step": {step},') + "\n" for step in range(1, MANY + 1))
    (tmp_path / metrics.FILE).write_text("".join(lines))
    tracemalloc.start()
    try:
        assert read(tmp_path) == MANY
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MOST_BYTES, f"{most:,} bytes"


def test_a_validation_is_a_row_and_no_step(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    found = metrics.Metrics(file, after_step=0)
    found.add(**row(1))
    line = found.add_validation(step=1, loss=2.5, seconds=3.0)
    found.add(**row(2))
    found.add_validation(step=2, loss=math.inf, seconds=3.0)
    assert line == "step 1: validation loss 2.5000 (3.0 s)"
    rows = list(metrics.Rows(file))
    assert [each.get("val_loss") for each in rows] == [None, 2.5, None, None]
    assert [metrics.is_validation(each) for each in rows] == [False, True, False, True]
    assert metrics.summary_of(file) == "step 2, first loss 8.0000, last loss 4.0000"
    assert metrics.is_validation(metrics.last_row(file))
    assert metrics.last_row(file, of_step=True)["step_s"] == 0.1
    metrics.Metrics(file, after_step=1)
    assert [each["step"] for each in metrics.Rows(file)] == [1, 1], "a resume keeps what it does not repeat"
