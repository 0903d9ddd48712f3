"""Metrics of a run: rows in flat memory, with damaged ones left out and counted by every reader."""

import json
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from ops.report.record import unpack
from ops.report.tables import warnings_of
from tests.unit.assets.training.trainkit.run.runs import metrics, report, row, run_record

MANY = 30_000
MOST_BYTES = 12_000_000


def test_a_resume_takes_out_the_steps_that_come_again_and_a_torn_line(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    first = metrics.Metrics(file, after_step=0)
    for step in range(1, 6):
        first.add(**row(step))
    with file.open("a") as torn:
        torn.write('{"step": 6, "lo')
    again = metrics.Metrics(file, after_step=3)
    line = again.add(**row(4, loss=1.5, mfu=0.415))
    assert [read["step"] for read in list(metrics.Rows(file))] == [1, 2, 3, 4]
    assert list(metrics.Rows(file))[3]["mfu"] == 0.415
    assert "mfu" not in list(metrics.Rows(file))[2]
    assert line.startswith(
        "step 4: loss 1.5000, 4,000 tokens/s, MFU 41.5%, 0.100 s a step (10% data), 1.0 GiB"
    )
    assert again.summary() == "step 4, first loss 8.0000, last loss 1.5000"


def test_every_row_of_the_metrics_is_json_also_where_a_number_is_not_finite(tmp_path: Path) -> None:
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
    assert written.summary() == "step 3, first loss not a number, last loss not a number"


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


LOST_STARTS = 4


def of_rows(run_dir: Path) -> int:
    rows = metrics.Rows(run_dir / metrics.FILE)
    assert [each["step"] for each in rows] == [1, 2, 4]
    return rows.damaged


def of_report(run_dir: Path) -> int:
    summary = report.summarize(run_dir)
    said = report.render(summary, [])
    assert said.startswith("report: 4 steps, loss 8.0000 -> 2.0000")
    assert said.endswith(f"restarts: 0, {summary['damaged_rows']} damaged rows skipped")
    return int(summary["damaged_rows"]) - LOST_STARTS


def of_trainctl_report(run_dir: Path) -> int:
    record, reading = run_record.read_run(run_dir, None)
    run = unpack(run_record.pack(record, reading.buckets, points=20))
    assert (run.rows, run.start_count, run.exit_code) == (3, 1, 0)
    warning = f"Damaged rows of metrics, starts and ends that were skipped: {run.damaged_rows}."
    assert warning in warnings_of(run)
    return run.damaged_rows - LOST_STARTS


@pytest.mark.parametrize("count", [of_rows, of_report, of_trainctl_report])
def test_a_reader_skips_damaged_rows_and_counts_them(damaged_run: Path, count: Callable[[Path], int]) -> None:
    assert count(damaged_run) == len(DAMAGE)


def test_a_resume_removes_damaged_rows_and_reports_still_count_them(
    damaged_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = damaged_run / metrics.FILE
    metrics.Metrics(file, after_step=4)
    assert f"{file}: {len(DAMAGE)} damaged rows skipped" in capsys.readouterr().out
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [1, 2, 4]
    assert of_report(damaged_run) == len(DAMAGE)
    metrics.Metrics(file, after_step=4)
    assert of_report(damaged_run) == len(DAMAGE), "a second resume counts none twice"


def test_damaged_rows_of_steps_that_are_repeated_are_no_loss(tmp_path: Path) -> None:
    file = tmp_path / metrics.FILE
    file.write_text(json.dumps(row(1)) + "\n" + '{"step": 2, "lo')
    metrics.Metrics(file, after_step=1)
    rows = metrics.Rows(file)
    assert [each["step"] for each in rows] == [1]
    assert rows.damaged == 0


def test_a_run_of_damaged_rows_only_says_so(tmp_path: Path) -> None:
    (tmp_path / metrics.FILE).write_bytes(bytes(100))
    said = report.render(report.summarize(tmp_path), [])
    assert said == "report: the run wrote no metrics, 1 damaged rows skipped"


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    with (folder / metrics.FILE).open("w") as file:
        line = json.dumps(row(1, time="2026-03-02T09:00:00+00:00"))
        for step in range(1, MANY + 1):
            file.write(line.replace('"step": 1,', f'"step": {step},') + "\n")
    return folder


def resume(run_dir: Path) -> int:
    metrics.Metrics(run_dir / metrics.FILE, after_step=MANY)
    return MANY


def summarize(run_dir: Path) -> int:
    return int(metrics.summary_of(run_dir / metrics.FILE).split()[1].rstrip(","))


def record(run_dir: Path) -> int:
    return int(run_record.read_run(run_dir, None)[0]["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("read", [resume, summarize, record])
def test_many_rows_are_read_in_flat_memory(long_run: Path, read: Callable[[Path], int]) -> None:
    tracemalloc.start()
    try:
        assert read(long_run) == MANY
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MOST_BYTES, f"{most:,} bytes"


def test_a_validation_has_a_row_of_its_own_that_is_no_step(tmp_path: Path) -> None:
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
