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
from trainkit.data.documents import documents_of, pieces_of, text_files, units_of
from trainkit.data.prepare_tokens import finished, prepare
from trainkit.data.shards import Manifest, ShardError
from trainkit.data.tokenize_unit import Recipe

from tests.unit.assets.training.workload_modules import Letters


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[..., Recipe]:
    """Recipes of six files, each of some documents."""
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(6):
        texts = [f"line {line} of file {number}\n{'x' * 990}\n\n" for line in range(40)]
        lines = [json.dumps({"text": text}) + "\n" for text in texts]
        (raw / f"{number}.jsonl").write_text("".join(lines), encoding="utf-8")
    units = tuple(piece for file in sorted(raw.iterdir()) for piece in pieces_of(file, raw, piece_bytes=9000))

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
    texts = [text for unit in one.units for text, _ in documents_of(unit)]  # type: ignore[arg-type]
    assert sum(count.values()) == sum(map(len, texts)) + documents
    noted = sum(s["documents"] for shards in manifest["splits"].values() for s in shards)
    assert noted == documents == len(texts)
    assert 0 < count["val"] < count["train"]


def made_of(recipe: Callable[..., Recipe], folder: Path, **other: Any) -> Manifest:
    """Make the shards of all files of a folder, whose tokens are their bytes."""
    units = units_of(text_files(folder), folder, validation_every=20)
    return made(recipe(folder.name + "-shards", units=units, validation_every=20, **other))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["files", "lines", "lines of many files"])
def test_one_document_of_twenty_is_for_validation(
    recipe: Callable[..., Recipe], tmp_path: Path, layout: str
) -> None:
    folder, texts = tmp_path / "many", [f"{number} {'x' * 4990}" for number in range(120)]
    folder.mkdir()
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    if layout == "files":
        for number, text in enumerate(texts):
            (folder / f"{number}.txt").write_text(text, encoding="utf-8")
    elif layout == "lines":
        (folder / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    else:
        for number in range(12):
            (folder / f"{number}.jsonl").write_text("".join(lines[number::12]), encoding="utf-8")
    manifest = made_of(recipe, folder)
    assert (manifest.documents("train"), manifest.documents("val")) == (114, 6)
    assert len(manifest.shards()) == 2, "small files have no shard each"


@pytest.mark.slow
def test_a_book_is_one_document_and_its_end(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    folder, book = tmp_path / "book", "".join(f"line {line} of a book\n\n" for line in range(30_000))
    folder.mkdir()
    (folder / "book.txt").write_text(book, encoding="utf-8")
    manifest = made_of(recipe, folder)
    shards = {
        shard.file: np.fromfile(tmp_path / "book-shards" / shard.file, "<u2") for shard in manifest.shards()
    }
    train, val = shards.values()
    assert [int((ids == 256).sum()) for ids in (train, val)] == [1, 1]
    assert (train[-1], val[-1]) == (256, 256)
    assert bytes([*train[:-1], *val[:-1]]) == book.encode()
    assert len(val) == pytest.approx(len(book) / 20, rel=0.01)
    assert manifest.longest == len(train)


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
        {"units": (replace(whole.units[0], split="val"),)},
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
