"""Preparation: the same shards from any number of processes, and none made twice."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from trainkit.data import prepare_tokens
from trainkit.data.documents import documents_of, pieces_of
from trainkit.data.prepare_tokens import finished, prepare
from trainkit.data.shards import Manifest, ShardError
from trainkit.data.tokenize_unit import Recipe

from tests.unit.assets.training.workload_modules import Letters


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[..., Recipe]:
    """Recipes of six files of text, each of some blocks."""
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(6):
        lines = [f"line {line} of file {number}\n{'x' * 990}\n\n" for line in range(40)]
        (raw / f"{number}.txt").write_text("".join(lines), encoding="utf-8")
    units = tuple(piece for file in sorted(raw.iterdir()) for piece in pieces_of(file, piece_bytes=9000))

    def make(folder: str = "shards", **other: Any) -> Recipe:
        settings: dict[str, Any] = {"units": units, "read": documents_of, "encoder": Letters()}
        settings |= {"vocab_size": 257, "tokenizer_sha256": "letters", "source": {}, "validation_every": 3}
        return Recipe(folder=tmp_path / folder, **settings | other)

    return make


def made(recipe: Recipe, *, workers: int = 1) -> Manifest:
    return prepare(recipe, workers=workers)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.slow
def test_two_processes_make_the_shards_of_one(recipe: Callable[..., Recipe]) -> None:
    one, two = recipe("1"), recipe("2")
    made(one)
    made(two, workers=2)
    assert content(one.folder) == content(two.folder)
    manifest = json.loads((one.folder / "manifest.json").read_text(encoding="utf-8"))
    count = {split: sum(s["tokens"] for s in manifest["splits"][split]) for split in ("train", "val")}
    documents = sum(int((np.fromfile(file, dtype="<u2") == 256).sum()) for file in one.folder.glob("*.bin"))
    assert sum(count.values()) == sum(unit.size_bytes for unit in one.units) + documents
    assert 0 < count["val"] < count["train"]


@pytest.mark.slow
def test_only_missing_shards_are_made(recipe: Callable[..., Recipe]) -> None:
    whole = recipe()
    made(whole)
    before = content(whole.folder)
    times = {file: file.stat().st_mtime_ns for file in whole.folder.glob("*.bin")}
    made(whole)
    assert {file: file.stat().st_mtime_ns for file in times} == times
    (whole.folder / "train-00002.bin").unlink()
    made(whole)
    assert content(whole.folder) == before
    changed = {file.name for file, at in times.items() if file.stat().st_mtime_ns != at}
    assert changed == {"train-00002.bin", "val-00002.bin"}
    assert all(finished(whole, number) for number in range(len(whole.units)))
    assert not any(finished(recipe(validation_every=5), number) for number in range(len(whole.units)))
    shorter = made(recipe(units=whole.units[:2]))
    assert {file.name for file in whole.folder.glob("*.bin")} == {shard.file for shard in shorter.shards()}


def test_what_changes_shards_changes_their_fingerprint(recipe: Callable[..., Recipe]) -> None:
    whole = recipe()
    changes: list[dict[str, Any]] = [
        {"units": (replace(whole.units[0], fingerprint="rewritten"),)},
        {"tokenizer_sha256": "another"},
        {"validation_every": 5},
        {"vocab_size": 2**16 + 1},
        {"layout": "2"},
    ]
    found = {recipe(**each).fingerprint(0) for each in changes}
    assert len(found - {whole.fingerprint(0)}) == len(changes)
    assert recipe(source={"corpus": "other"}).fingerprint(0) == whole.fingerprint(0)


def test_a_killed_process_ends_all_with_advice(
    recipe: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill_one() -> str:
        for child in psutil.Process().children(recursive=True):
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
        return ""

    monkeypatch.setattr(prepare_tokens, "PROGRESS_EVERY_S", 0.1)
    slow = recipe(encoder=Letters(0.2))
    with pytest.raises(ShardError, match=r"was killed, perhaps because memory ran out.*PREPARE_WORKERS=1\."):
        prepare(slow, workers=2, also=kill_one)
