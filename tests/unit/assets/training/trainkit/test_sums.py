"""Sums of checkpoints: noted by the ranks that write, compared by the nodes that read, a share each."""

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from trainkit import sums
from trainkit.run import checkpoints

from tests.unit.assets.training.trainkit.run.runs import a_run
from training_cluster.paths import TRAINING


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
