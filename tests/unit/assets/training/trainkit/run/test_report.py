"""Report of the head node about a run: one line that fits, from rows that are read once."""

import ast
import contextlib
import io
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trainkit.run import metrics, report
from trainkit.run.buckets import Buckets
from trainkit.run.run_files import node_count

from ops.account.head_node import MAX_OUTPUT_BYTES
from ops.report.goodput import goodput_table
from ops.report.html import table_html
from ops.report.record import Run, unpack
from ops.report.tables import profiles_table, summary_table
from tests.unit.assets.training.trainkit.run.runs import row as whole_row
from tests.unit.ops.report.example_run import write_all_reduce, write_training
from training_cluster.paths import TRAINING


def tell(*arguments: str | Path) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert report.main([*map(str, arguments)]) == 0
    return said.getvalue()


def recorded(run_dir: Path, *options: str) -> Run:
    return unpack(tell(run_dir, "--record", *options))


def write(
    run_dir: Path, rows: list[dict[str, Any]], starts: str = "0 0 2026-03-02T09:00:00Z n-[1-2] 7\n"
) -> Path:
    run_dir.mkdir(parents=True)
    (run_dir / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run_dir / "starts").write_text(starts)
    return run_dir


def row(step: int, **changes: Any) -> dict[str, Any]:
    found = {"step": step, "loss": 3.0, "tokens": step * 100, "tokens_per_s": 50.0, "world_size": 2}
    return {**found, "time": f"2026-03-02T09:{step // 60:02}:{step % 60:02}+00:00", **changes}


@pytest.mark.slow
def test_many_rows_fit_one_answer(tmp_path: Path) -> None:
    noise, run_dir = random.Random(1), tmp_path / "runs" / "gpt2" / "long"
    run_dir.mkdir(parents=True)
    with (run_dir / "metrics.jsonl").open("w") as file:
        for step in range(1, 20_001):
            values = {name: noise.random() * 1e6 for name in ("loss", "tokens_per_s", "mfu", "learning_rate")}
            more = {"memory_bytes": noise.randrange(2**36), "step_s": 1.0, "data_s": noise.random()}
            file.write(
                json.dumps({"step": step, "tokens": step * 524_288, **values, **more, "world_size": 16})
                + "\n"
            )
    (run_dir / "starts").write_text("".join(f"{n} 0 2026-03-02T09:00:00Z n-[1-2] {n}\n" for n in range(500)))
    said = tell(run_dir, "--record")
    assert len(said) < MAX_OUTPUT_BYTES
    run = unpack(said)
    assert (run.rows, len(run.series)) == (20_000, 6)
    assert 20 <= 2 * len(run.axes["step"]) <= 300
    assert (run.start_count, run.starts[-1].job) == (500, "499")


def test_buckets_keep_the_least_and_the_most() -> None:
    buckets, noise = Buckets(), random.Random(2)
    values = [noise.gauss(0, 1) for _ in range(50_000)]
    values[31_234], values[7] = 99.0, -99.0
    for step, value in enumerate(values):
        buckets.add({"step": step}, {"loss": value})
    found = buckets.at_most(100)
    spans = [bucket.spans["loss"] for bucket in found]
    assert len(found) <= 100
    assert (sum(bucket.rows for bucket in found), max(span.high for span in spans)) == (50_000, 99.0)
    assert min(span.low for span in spans) == -99.0
    assert sum(span.total for span in spans) == pytest.approx(sum(values))
    assert found[-1].at == {"step": 49_999}
    # Asked again, with fewer: the first answer has not used them up.
    assert sum(bucket.rows for bucket in buckets.at_most(10)) == 50_000


def test_a_run_without_usual_rows_has_a_report(tmp_path: Path) -> None:
    run = recorded(write(tmp_path / "runs" / "gpt2" / "few", [row(1, loss=4.0), row(2, loss=3.5)]))
    assert (run.series["loss"].mean, run.series["loss"].low, run.axes["step"]) == ([4.0, 3.5], [], [1, 2])
    assert run.axes["seconds"] == [1, 2]
    many = write_training(tmp_path / "many", steps=700)
    assert len(recorded(many, "--points", "60").axes["step"]) <= 30
    # Metrics writes null; older versions wrote bare NaN and Infinity.
    rows = [row(1), row(2, loss=None), row(3, loss=math.nan), row(4, loss=math.inf)]
    run_dir = write(tmp_path / "runs" / "gpt2" / "diverged", rows)
    run = recorded(run_dir)
    assert (run.not_finite["loss"].count, run.not_finite["loss"].first_step) == (3, 2)
    assert run.series["loss"].mean == [3.0, None, None, None]
    assert "loss 3.0000 -> not a number" in tell(run_dir)
    empty = recorded(write(tmp_path / "runs" / "gpt2" / "empty", []))
    assert (empty.rows, empty.summary.steps, empty.state) == (0, None, "runs, or was killed")
    run_dir = write_all_reduce(tmp_path)
    said = tell(run_dir)
    assert "25 message sizes, at most 44.916 GB/s (bus) at 17,179,869,184 bytes, world size 16" in said
    run = recorded(run_dir)
    assert (run.axes["message_bytes"][0], len(run.series["busbw_gb_per_s"].mean)) == (1024, 25)


def test_a_run_tells_its_profiles(tmp_path: Path) -> None:
    run_dir = write_training(tmp_path, steps=1000)
    assert recorded(run_dir).profiles == []
    for name in (
        "traces/iteration_12/rank0.gz",
        "traces/iteration_12/rank1.gz",
        "memory_snapshot/step_012/0",
    ):
        file = run_dir / "profiling" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * 100)
    run = recorded(run_dir)
    assert [(each.kind, each.step, each.files, each.bytes) for each in run.profiles] == [
        ("memory", 12, 1, 100),
        ("trace", 12, 2, 200),
    ]
    table = profiles_table(run)
    assert [row[-1] for row in table.rows] == [
        "https://docs.pytorch.org/memory_viz",
        "https://ui.perfetto.dev",
    ]
    assert '<a href="https://ui.perfetto.dev" rel="noreferrer">' in table_html(table)


def test_a_label_has_a_checkpoints_size(tmp_path: Path) -> None:
    """A report reads no file of 10,000 ranks."""
    run_dir = write(tmp_path / "runs" / "gpt2" / "big", [row(1)])
    for step, label in ((1, '{"files": {"rank-0": 40, "rank-1": 2}}'), (2, '{"files": '), (3, "{}")):
        folder = tmp_path / "checkpoints" / "gpt2" / "big" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        (folder / "checkpoint.json").write_text(label)
    assert [(each.step, each.bytes) for each in recorded(run_dir).checkpoints] == [(1, 42), (2, 10), (3, 2)]


def test_a_run_tells_its_data(tmp_path: Path) -> None:
    run_dir = write_training(tmp_path, steps=1000)
    assert recorded(run_dir).data is None
    tokens = recorded(run_dir).summary.tokens
    assert tokens
    described = "raw: tokens: train 7 (1 documents)"
    noted = {"described": [described], "tokens": tokens // 4, "shards": []}
    (run_dir / "data.json").write_text(json.dumps(noted))
    rows = {row[0]: row[1] for row in summary_table([recorded(run_dir)]).rows}
    assert (rows["data"], rows["epochs so far"]) == (described, "4")


def test_a_lost_start_lasts_to_its_last_row(tmp_path: Path) -> None:
    starts = "0 0 2026-03-02T09:00:00Z n-1 7\n1 20 2026-03-02T10:00:00Z n-1 7\n"
    rows = [row(20), row(21, time="2026-03-02T10:00:30+00:00")]
    run_dir = write(tmp_path / "runs" / "gpt2" / "lost", rows, starts)
    assert [start.seconds for start in recorded(run_dir).starts] == [20, 30]
    (run_dir / "ends").write_text("7 1 2026-03-02T10:01:00Z 1\n")
    again = recorded(run_dir)
    assert ([start.seconds for start in again.starts], again.state) == ([20, 60], "ended with exit code 1")
    lists = {"n-1": 1, "n-[1-3,7],b": 5, "n-[08-11]": 4, "a-[1-2]-[1-3]": 6, "a,b,c-[1,2]": 4}
    assert {nodes: node_count(nodes) for nodes in lists} == lists


def test_runs_are_found_by_job_and_name(tmp_path: Path) -> None:
    write_training(tmp_path, steps=20, run="mine", job="19", deaths=())
    write(tmp_path / "runs" / "roberta" / "job-7", [])
    roberta, gpt2 = ["roberta/job-7"], ["gpt2/mine"]
    found: dict[str, list[str]] = {"7": roberta, "job-7": roberta, "roberta/job-7": roberta}
    found |= {"mine": gpt2, "19": gpt2, "99": []}
    for name, runs in found.items():
        assert json.loads(tell(tmp_path / "runs", "--find", name))["found"] == runs
    assert set(json.loads(tell(tmp_path / "runs", "--find", "99"))["newest"]) == {*roberta, *gpt2}


def test_it_needs_the_python_of_head_nodes() -> None:
    """Amazon Linux 2023's python3 is 3.9; what takes a newer one must not be imported."""
    listing = (
        "import sys, trainkit.run.report\n"
        "print(*(m.__file__ for name, m in sys.modules.items() if name.startswith('trainkit.')))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-B", "-c", listing],
        env={"PYTHONPATH": str(TRAINING)},
        capture_output=True,
        text=True,
        check=True,
    )
    files = [path for path in map(Path, done.stdout.split()) if path.name != "__init__.py"]
    assert len(files) > 3
    for file in files:
        text = file.read_text()
        ast.parse(text, feature_version=(3, 9))
        assert "from __future__ import annotations" in text
        for newer in ("strict=", "kw_only", "slots=", "pairwise", "datetime.UTC"):
            assert newer not in text, f"{file.name}: {newer}"


def test_validations_are_compared_with_validations(tmp_path: Path) -> None:
    rows = [row(step, loss=4.0 - step / 10) for step in range(1, 11)]
    for at, loss in ((10, 3.5), (5, 3.9)):
        rows.insert(at, {"step": at, "val_loss": loss, "val_s": 2.0, "time": rows[at - 1]["time"]})
    run_dir = write(tmp_path / "runs" / "gpt2" / "job-7", rows)
    figures = tmp_path / "figures.json"
    figure = {"what": "a model", "family": "p4d", "nodes": 2, "unit": "nats", "source": "paper"}
    losses = [{"metric": "val_loss", "value": 3.4}, {"metric": "loss", "value": 2.9}]
    figures.write_text(json.dumps([{**figure, **loss, "reproduced": False} for loss in losses]))
    run = recorded(run_dir)
    assert (run.rows, run.summary.steps) == (10, 10)
    assert (run.summary.last_loss, run.summary.first_val_loss, run.summary.last_val_loss) == (3.0, 3.9, 3.5)
    places = dict(zip(run.axes["step"], run.series["val_loss"].mean, strict=True))
    assert {step: loss for step, loss in places.items() if loss is not None} == {5: 3.9, 10: 3.5}
    assert None not in run.series["loss"].mean, "a validation leaves no gap in the training's curve"
    said = tell(run_dir, "--figures", str(figures), "--family", "p4d")
    assert "loss 3.9000 -> 3.0000, validation loss 3.9000 -> 3.5000," in said
    assert "3.4 nats; this run: 3.5" in said.replace(" (paper; not reproduced here)", "")


def test_the_next_row_has_a_saves_seconds(tmp_path: Path) -> None:
    run_dir = write(tmp_path / "runs" / "gpt2" / "job-7", [])
    written = metrics.Metrics(run_dir / metrics.FILE, after_step=0)
    for step in range(1, 9):
        written.add(**whole_row(step, step_s=1.0))
        if step % 4 == 0:
            written.saved(1.0)
    written.add_validation(step=8, loss=1.0, seconds=2.0)
    rows = [json.loads(line) for line in (run_dir / metrics.FILE).read_text().splitlines()]
    assert [(each["step"], each["save_s"]) for each in rows if "save_s" in each] == [(5, 1.0), (8, 1.0)]


def test_paid_time_is_split_into_parts(tmp_path: Path) -> None:
    """Two starts on three nodes, one of them a spare until a node is lost, then one on two other nodes."""
    starts = (
        "0 0 2026-03-02T09:01:40Z n-[1-2] 7 0 3 100\n"
        "1 4 2026-03-02T09:03:00Z n-[2-3] 7 0 3 180\n"
        "2 8 2026-03-02T09:10:00Z n-[1-2] 7 1 2 30\n"
    )
    seconds = {1: 120, 2: 130, 3: 140, 4: 152, 5: 210, 6: 220, 7: 230, 8: 240, 9: 620, 10: 630}
    rows = [row(at) | {"step": step, "step_s": 10} for step, at in seconds.items()]
    rows[3]["save_s"], rows[5]["local_save_s"] = 2, 3
    run_dir = write(tmp_path / "runs" / "gpt2" / "job-7", rows, starts)
    # Steps 9 and 10 of the second start were repeated; the last start still runs.
    (run_dir / "ends").write_text("7 0 2026-03-02T09:02:50Z 1 ranks\n7 1 2026-03-02T09:05:00Z 1 slurm\n")
    run = recorded(run_dir)
    assert run.goodput
    parts = {
        "training": 2 * (40 + 37 + 20),
        "saving": 2 * (2 + 3),
        "starting": 3 * (100 + 10) + 2 * (30 + 10),
        "checking": 3 * 10,
        "restarts": 3 * 20,
        "lost steps": 3 * (18 + 60),
        "idle nodes": 42 + 40,
    }
    assert run.goodput.paid_s == run.use[0].node_s == 3 * (100 + 200) + 2 * (30 + 30)
    assert f", {194 / 1020:.1%} of the paid node time trained, " in tell(run_dir)
    others = {"waiting_s": 270, "save_s": 2, "restart_s": 35, "unseen_ends": 0}
    assert run.goodput.model_dump() == {"node_s": parts, **others}


def test_wrong_starts_and_times_are_borne(tmp_path: Path) -> None:
    day = "2026-03-02T"
    for number, (words, end, at, paid_s) in enumerate(
        [
            ("n-1 7 0 1", "", "09:00:30Z", 30),  # cut by a full disk
            ("n-1 7 0 1 -5", "", "09:00:30Z", 30),  # clocks
            ("n-1 7 0 0 9", "", "09:00:30Z", 39),
            ("n-1 7", "09:01:00Z", "23:00:00Z", 60),
            ("n-1 7", "08:00:00Z", "09:00:30Z", 0),
            (f"n-1 7\n1 0 {day}09:00:40Z n-1 7 1 1 99", "09:01:00Z", "09:00:50Z", 70),
            (f"n-1 7 0 {9**99} 5", "", "09:00:30Z", None),
            ("n-[3-1] 7 0 1 5", "", "09:00:30Z", None),
            ("n-1 7 x y z", "", "09:00:30Z", None),
            ("n-1 7 0 1 5", "", "08:00:00Z", None),
            ("", "", "09:00:30Z", None),
        ]
    ):
        rows = [row(1, time=f"{day}{at}", step_s=1e308, save_s=-1, val_s=1e308)]
        run_dir = write(tmp_path / str(number), rows, f"0 0 {day}09:00:00Z {words}\n")
        (run_dir / "ends").write_text(f"7 0 {day}{end} 1\n")
        run = recorded(run_dir)
        assert (run.goodput and run.goodput.paid_s) == paid_s, words
        assert min(run.goodput.node_s.values() if run.goodput else [0]) >= 0, words
        assert goodput_table([run]).rows or paid_s is None


def test_figures_stand_beside_medians_after_warm_up(tmp_path: Path) -> None:
    rows = [row(step, loss=8 / step, tokens_per_s=1000.0 * step, mfu=0.4, step_s=0.1) for step in range(1, 9)]
    starts = "0 0 2026-01-01T00:00:00Z n 7\n1 4 2026-01-01T01:00:00Z n 7\n"
    run_dir = write(tmp_path / "runs" / "gpt2" / "job-7", rows, starts)
    figure = {"what": "a paper", "nodes": 1, "metric": "mfu", "value": 0.45, "unit": "share"}
    figures = [{**figure, "family": each, "source": "there", "reproduced": False} for each in ("p4d", "p5")]
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    arguments = [str(run_dir), "--figures", str(tmp_path / "figures.json"), "--family", "p4d"]
    said = tell(*arguments)
    assert "8 steps, loss 8.0000 -> 1.0000, 6,000 tokens/s (median), MFU 40.0%" in said
    assert "restarts: 1" in said
    assert "published: a paper, p4d, 1 nodes: 0.45 share (there; not reproduced here); this run: 0.4" in said
    assert "p5" not in said
    assert report.main([str(tmp_path / "nowhere")]) == 1


def test_figures_of_other_models_are_left_out(tmp_path: Path) -> None:
    """A model of 6 million parameters would stand beside one of 8 billion, on 16 nodes."""
    run_dir = write(tmp_path / "runs" / "titan" / "job-7", [row(1)])
    arguments: list[str | Path] = [
        run_dir,
        "--figures",
        TRAINING / "titan" / "figures.json",
        "--family",
        "p5",
    ]
    label = tmp_path / "checkpoints" / "titan" / "job-7" / "step-000001" / "checkpoint.json"
    label.parent.mkdir(parents=True)
    settings = {
        "model": "llama3",
        "size": "8B",
        "seq_len": 8192,
        "lora_rank": 0,
        "float8": "no",
        "compile": "yes",
    }
    for nodes, changes, count in (
        (1, {}, 1),
        (2, {}, 0),
        (16, {"compile": "no"}, 1),
        (1, {"size": "debugmodel"}, 0),
        (1, {"seq_len": 4096}, 0),
    ):
        (run_dir / "starts").write_text(f"0 0 2026-03-02T09:00:00Z n-[1-{nodes}] 7\n")
        label.write_text(json.dumps({"settings": settings | changes}))
        assert tell(*arguments).count("published: Llama 3.1 8B") == count
    label.write_text("cut off")
    assert "published" not in tell(*arguments)
