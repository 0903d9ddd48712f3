"""The checkpoint that an export reads: found, complete, one's own, and nothing is overwritten."""

import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest
from trainkit.run.run import Run
from trainkit.source import ExportSettings, Source, find_source


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
