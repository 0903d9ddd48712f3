"""The checkpoint that an export reads: found, complete, one's own, and nothing is overwritten."""

import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load("trainkit.source")


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


def find(source: ModuleType, shared: Path, **settings: Any) -> Any:
    from trainkit.run.run import Run  # noqa: PLC0415 (on the path by the fixture)

    run = Run(
        run_dir=shared / "runs/titan/job-9",
        checkpoint_dir=shared / "checkpoints/titan/job-9",
        data_dir=shared,
        rank=0,
        local_rank=0,
        world_size=1,
    )
    return source.find_source(source.ExportSettings(**settings), run, needs="titan.json")


def test_the_newest_or_the_chosen_checkpoint_is_found(source: ModuleType, shared: Path) -> None:
    assert find(source, shared) is None
    newest = find(source, shared, export_run="a")
    assert newest.checkpoint.name == "step-000010"
    assert newest.to == shared / "runs/titan/a/export-step-000010"
    chosen = find(source, shared, export_run="a", export_step=5, export_to=str(shared / "out"))
    assert (chosen.checkpoint.name, chosen.to) == ("step-000005", shared / "out")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"export_run": "b"}, "no checkpoint in /.*; there are: none"),
        ({"export_run": "a", "export_step": 7}, "no checkpoint of step 7 in /.*; there are: 5, 10"),
        ({"export_run": "a", "export_step": 5, "export_to": "/tmp"}, "/tmp already exists"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(
    source: ModuleType, shared: Path, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        find(source, shared, **settings)
    assert re.search(sentence, str(caught.value))


def test_an_incomplete_checkpoint_and_one_without_settings_are_refused(
    source: ModuleType, shared: Path
) -> None:
    (shared / "checkpoints/titan/a/step-000005/weights").write_text("longer")
    with pytest.raises(SystemExit, match="incomplete"):
        find(source, shared, export_run="a", export_step=5)
    (shared / "runs/titan/a/titan.json").unlink()
    with pytest.raises(SystemExit, match=r"titan\.json is missing"):
        find(source, shared, export_run="a")


@pytest.mark.root
def test_the_checkpoint_of_another_user_is_refused(
    source: ModuleType, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(shared / "checkpoints/titan/a/step-000010/weights", 12345, -1)
    monkeypatch.setattr("os.getuid", lambda: 0)
    with pytest.raises(SystemExit, match="belongs to another user"):
        find(source, shared, export_run="a")


def test_changed_bytes_are_not_exported(source: ModuleType, shared: Path) -> None:
    folder = shared / "checkpoints/titan/a/step-000010"
    noted = {"files": {"weights": 1}, "sums": {"weights": f"{zlib.crc32(b'w'):08x}"}}
    (folder / "checkpoint.json").write_text(json.dumps(noted))
    assert find(source, shared, export_run="a").checkpoint == folder
    (folder / "weights").write_text("v")
    with pytest.raises(SystemExit, match=r"weights of .* has other bytes than when it was saved: give anot"):
        find(source, shared, export_run="a")
