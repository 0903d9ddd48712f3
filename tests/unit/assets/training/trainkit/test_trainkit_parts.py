"""Small parts of trainkit: exported checkpoints, their sums, memory, suspected nodes, validation."""

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trainkit import sums
from trainkit.memory import GIB, enough_memory, smaller_micro_steps
from trainkit.run import checkpoints
from trainkit.run.run import Run
from trainkit.run.settings import AccumulatingSettings
from trainkit.source import ExportSettings, Source, find_source
from trainkit.suspects import mark_of, notify, suspects
from trainkit.validation import batches_of_rank

from tests.unit.assets.training.trainkit.run.runs import a_run
from training_cluster.paths import TRAINING


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A run `a` with checkpoints of steps 5 and 10."""
    for step in (5, 10):
        folder = tmp_path / "checkpoints" / "titan" / "a" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        (folder / "weights").write_text("w")
        (folder / "checkpoint.json").write_text(json.dumps({"files": {"weights": 1}}))
    run = tmp_path / "runs" / "titan" / "a"
    run.mkdir(parents=True)
    (run / "titan.json").write_text("{}")
    return tmp_path


def find(shared: Path, **settings: Any) -> Source | None:
    run = Run(
        run_dir=shared / "runs/titan/job-9",
        checkpoint_dir=shared / "checkpoints/titan/job-9",
        data_dir=shared,
        rank=0,
        local_rank=0,
        world_size=1,
    )
    return find_source(ExportSettings(**settings), run, needs="titan.json")


def test_the_newest_or_chosen_checkpoint_is_found(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(shared) is None
    monkeypatch.delenv("PREPARE_ONLY", raising=False)
    assert [ExportSettings(export_run=run).trains for run in ("", "a")] == [True, False]
    monkeypatch.setenv("PREPARE_ONLY", "1")
    assert not ExportSettings().trains
    newest = find(shared, export_run="a")
    assert newest
    assert (newest.checkpoint.name, newest.to) == ("step-000010", shared / "runs/titan/a/export-step-000010")
    chosen = find(shared, export_run="a", export_step=5, export_to=str(shared / "out"))
    assert chosen
    assert (chosen.checkpoint.name, chosen.to) == ("step-000005", shared / "out")


def test_what_cannot_be_exported_is_one_sentence(shared: Path) -> None:
    def refuses(sentence: str, **settings: Any) -> None:
        with pytest.raises(SystemExit, match=sentence):
            find(shared, **settings)

    refuses("no checkpoint in /.*; there are: none", export_run="b")
    refuses("no checkpoint of step 7 in /.*; there are: 5, 10", export_run="a", export_step=7)
    refuses("/tmp already exists", export_run="a", export_step=5, export_to="/tmp")
    (shared / "checkpoints/titan/a/step-000005/weights").write_text("longer")
    refuses("incomplete", export_run="a", export_step=5)
    folder = shared / "checkpoints/titan/a/step-000010"
    noted = {"files": {"weights": 1}, "sums": {"weights": f"{zlib.crc32(b'w'):08x}"}}
    (folder / "checkpoint.json").write_text(json.dumps(noted))
    assert find(shared, export_run="a")
    (folder / "weights").write_text("v")
    refuses("weights of .* has other bytes than when it was saved: give anot", export_run="a")
    (folder / "weights").write_text("w")
    (shared / "runs/titan/a/titan.json").unlink()
    refuses(r"titan\.json is missing", export_run="a")


@pytest.mark.root
def test_a_checkpoint_of_another_user_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(shared / "checkpoints/titan/a/step-000010/weights", 12345, -1)
    monkeypatch.setattr("os.getuid", lambda: 0)
    with pytest.raises(SystemExit, match="belongs to another user"):
        find(shared, export_run="a")


def write(folder: Path, *, name: str, parts: int) -> Path:
    file = folder / name
    file.write_bytes(os.urandom(sums.PART * (parts - 1) + 5))
    return file


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "PART", 100)
    monkeypatch.setattr(sums, "_BLOCK", 30)


@pytest.mark.usefixtures("small_parts")
def test_each_rank_reads_its_own_files_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (a_run(tmp_path, rank=rank) for rank in (0, 1))
    written = checkpoints.partial(first.checkpoint_dir, 7)
    written.mkdir()
    files = {rank: write(written, name=f"part-{rank}", parts=3) for rank in (0, 1)}
    sums.note_sums(second, written, [files[1]])
    opened = []

    def sum_of_part(place: tuple[Path, int]) -> str:
        opened.append(place[0])
        return read(place)

    read = sums._sum_of_part
    monkeypatch.setattr(sums, "_sum_of_part", sum_of_part)
    final = checkpoints.publish(written, 7, run=first, keep=2)
    assert set(opened) == {files[0]}
    label = json.loads((final / "checkpoint.json").read_text())
    assert set(label["sums"]) == set(label["files"]) == {"part-0", "part-1"}
    data = (final / "part-1").read_bytes()
    assert label["sums"]["part-1"] == "".join(f"{zlib.crc32(data[at:][:100]):08x}" for at in (0, 100, 200))
    assert sorted(path.name for path in final.iterdir()) == ["checkpoint.json", "part-0", "part-1"]


def test_no_rank_lists_all_ranks_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__7_0.distcp", "__7_1.distcp", "__70_0.distcp", "__1_0.distcp", ".metadata"):
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "scandir", None)
    monkeypatch.setattr(os, "listdir", None)
    found = {rank: [file.name for file in sums.files_of_rank(tmp_path, rank)] for rank in (7, 2)}
    assert found == {7: ["__7_0.distcp", "__7_1.distcp"], 2: []}


@pytest.mark.usefixtures("small_parts")
def test_shares_cover_every_part_once(tmp_path: Path) -> None:
    file = write(tmp_path, name="weights", parts=7)
    noted = {"weights": sums.sums_of([file])[file]}
    assert sums.changed_files(tmp_path, noted) == []
    data = file.read_bytes()
    for at in range(0, len(data), 100):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        found = [sums.changed_files(tmp_path, noted, share=share, shares=3) for share in range(3)]
        assert sorted(found) == [[], [], ["weights"]]


def test_the_nodes_of_a_job_share_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "step-000001"
    checkpoint.mkdir()
    files = [write(checkpoint, name=f"weights-{n}", parts=1) for n in range(3)]
    noted = {path.name: own for path, own in sums.sums_of(files).items()}
    (checkpoint / "checkpoint.json").write_text(json.dumps({"sums": noted}))
    # A Slurm of two nodes, of which each runs the step.
    step = 'while [[ $1 == --* ]]; do shift; done; for i in 0 1; do SLURM_PROCID=$i SLURM_NTASKS=2 "$@"; done'
    (tmp_path / "srun").write_text(f"#!/usr/bin/env bash\n{step}\n")
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    # job.slurm has no PYTHONPATH.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert sums.changed_files_of_job(checkpoint, noted) == []
    files[2].write_bytes(bytes(5))
    assert sums.changed_files_of_job(checkpoint, noted) == ["weights-2"]
    assert capsys.readouterr().err == ""  # no node read alone
    monkeypatch.setenv("PATH", "")
    assert sums.changed_files_of_job(checkpoint, noted) == ["weights-2"]
    assert "this node alone reads" in capsys.readouterr().err


def test_an_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "checkpoint.json").write_text(json.dumps({"sums": {"weights": "00000000"}}))
    module = [sys.executable, "-m", "trainkit.sums", str(tmp_path)]
    done = subprocess.run(module, env={"PYTHONPATH": str(TRAINING)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(
        f"{tmp_path}/weights cannot be read (Is a directory): fix that, and submit again.\n"
    )
    assert done.stderr.count("\n") == 1


CUDA = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 5 has a total capacity of 79.18 GiB.\nSee ..."


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(
        max_memory_reserved=lambda: 77 * GIB, mem_get_info=lambda: (GIB, round(79.2 * GIB))
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))


def test_out_of_memory_is_one_sentence() -> None:
    with pytest.raises(SystemExit) as ended, enough_memory("BATCH_SIZE=12", lambda: "BATCH_SIZE=6"):
        raise RuntimeError(CUDA)
    said = str(ended.value)
    assert "step with BATCH_SIZE=12: torch took 77.0 of 79.2 GiB (CUDA out of memory. Tried" in said
    assert said.endswith("): give BATCH_SIZE=6.")
    assert "\n" not in said
    with pytest.raises(RuntimeError, match="Loss is not finite"), enough_memory("", str):
        raise RuntimeError("Loss is not finite")


@pytest.mark.parametrize(
    ("batch", "count", "instead"),
    [
        (12, 1, "BATCH_SIZE=6 GRADIENT_ACCUMULATION=2, which make the same step"),
        (9, 2, "BATCH_SIZE=3 GRADIENT_ACCUMULATION=6, which make the same step"),
        (1, 4, "less"),
    ],
)
def test_smaller_micro_steps_make_the_same_step(batch: int, count: int, instead: str) -> None:
    given = AccumulatingSettings(batch_size=batch, gradient_accumulation=count)
    assert smaller_micro_steps(given, "less") == instead


def test_the_minority_is_suspected_and_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bits, nodes, did in (
        ("a a a a", "", ""),
        ("a a b a", "n1", "got other bits than 3 of 4 ranks"),
        ("a a b b a a", "n1", "got other bits than 4 of 6 ranks"),
        ("a a b b", "n0 n1", "no majority tells"),
        ("a a b ba", "n1", "got other bits when it computed again"),  # b, then a
    ):
        found, words = suspects([(f"n{i // 2}", each[0], each[-1]) for i, each in enumerate(bits.split())])
        assert (found, did in words) == (nodes.split(), True)
    sent: list[list[str]] = []
    monkeypatch.setattr("subprocess.run", lambda command, **_: sent.append(command[-3:]))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    for node in ("n1", "n2"):
        mark_of(tmp_path, node).write_text("step 6: n1 and n2 got different bits\n")
    for job, notices in (("7", ""), ("71", "webhook"), ("7", "webhook")):
        monkeypatch.setenv("NOTIFY", notices)
        monkeypatch.setenv("SLURM_JOB_ID", job)
        told = notify(tmp_path, set())
        assert notify(tmp_path, None) == notify(tmp_path, told) == told
    assert sent == [["trainkit.notify", "suspect node", "step 6: n1 and n2 got different bits"]]


@pytest.mark.parametrize(("ranks", "size"), [(1, 1), (1, 16), (3, 5), (8, 4), (64, 8)])
@pytest.mark.parametrize(("sequences", "wanted"), [(1000, 50), (40, 50), (2, 50)])
def test_any_ranks_and_batches_read_the_same_sequences(
    sequences: int, wanted: int, ranks: int, size: int
) -> None:
    shares = [batches_of_rank(sequences, wanted, rank=rank, ranks=ranks, size=size) for rank in range(ranks)]
    read = [each for share in shares for batch in share for each in batch]
    ((whole,),) = [batches_of_rank(sequences, wanted, rank=0, ranks=1, size=1000)]
    assert (sorted(read), len(set(read))) == (sorted(whole), min(sequences, wanted))
    assert all(len(batch) == size for share in shares for batch in share[:-1])
    counts = [sum(map(len, share)) for share in shares]
    assert max(counts) - min(counts) <= 1
