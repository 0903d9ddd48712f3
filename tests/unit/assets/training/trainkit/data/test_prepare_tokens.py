"""Preparation: the same shards from any number of processes, also when it is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil
import pytest

from tests.unit.assets.training.waiting import LONG_S, wait_until
from tests.unit.assets.training.workload_modules import GPT2, Import, Letters, workload_on_the_path
from training_cluster.paths import TRAINING

# Prepares some text files in two slow processes; killed in the middle by a test.
SLOW = """
from pathlib import Path
from tests.unit.assets.training.workload_modules import Letters
from trainkit.data.documents import documents_of, pieces_of
from trainkit.data.prepare_tokens import prepare
from trainkit.data.tokenize_unit import Recipe
if __name__ == "__main__":
    folder = Path({folder!r})
    units = tuple(p for f in sorted(Path({raw!r}).iterdir()) for p in pieces_of(f))
    prepare(Recipe(folder=folder, units=units, read=documents_of, encoder=Letters(stops_in={stops_in!r}),
        vocab_size=257, tokenizer_sha256="letters", source={{}}, validation_every=3), workers=2)
"""


@pytest.fixture(autouse=True)
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def tokens(load: Import) -> ModuleType:
    return load("trainkit.data.prepare_tokens")


@pytest.fixture
def error(load: Import) -> type[Exception]:
    found: type[Exception] = load("trainkit.data.shards").ShardError
    return found


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Six files of text, each of some blocks."""
    folder = tmp_path / "raw"
    folder.mkdir()
    for number in range(6):
        lines = [f"line {line} of file {number}\n{'x' * 990}\n\n" for line in range(40)]
        (folder / f"{number}.txt").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def recipe(load: Import, raw: Path) -> Callable[..., Any]:
    documents = load("trainkit.data.documents")

    def make(folder: Path, **other: object) -> Any:
        units = tuple(
            p for file in sorted(raw.iterdir()) for p in documents.pieces_of(file, piece_bytes=9000)
        )
        settings = {
            "folder": folder,
            "units": units,
            "read": documents.documents_of,
            "encoder": Letters(),
            "vocab_size": 257,
            "tokenizer_sha256": "letters",
            "source": {"corpus": "test"},
            "validation_every": 3,
        }
        return load("trainkit.data.tokenize_unit").Recipe(**(settings | other))

    return make


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.slow
def test_two_processes_make_the_same_shards_as_one_and_lose_no_text(
    tokens: ModuleType, recipe: Callable[..., Any], raw: Path, tmp_path: Path
) -> None:
    for workers in (1, 2):
        tokens.prepare(recipe(tmp_path / str(workers)), workers=workers, say=lambda _: None)
    assert content(tmp_path / "1") == content(tmp_path / "2")
    manifest = json.loads((tmp_path / "1" / "manifest.json").read_text(encoding="utf-8"))
    count = {split: sum(s["tokens"] for s in manifest["splits"][split]) for split in ("train", "val")}
    documents = sum(
        int((np.fromfile(file, dtype="<u2") == 256).sum()) for file in (tmp_path / "1").glob("*.bin")
    )
    text = sum(file.stat().st_size for file in raw.iterdir())
    assert sum(count.values()) == text + documents
    assert 0 < count["val"] < count["train"]


@pytest.mark.slow
def test_a_second_time_nothing_is_made_and_a_deleted_shard_alone_is(
    tokens: ModuleType, recipe: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "shards"
    tokens.prepare(recipe(folder), workers=1, say=lambda _: None)
    before = content(folder)
    times = {file: file.stat().st_mtime_ns for file in folder.glob("*.bin")}
    tokens.prepare(recipe(folder), workers=1, say=lambda _: None)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.bin")} == times
    lost = folder / "train-00002.bin"
    lost.unlink()
    tokens.prepare(recipe(folder), workers=1, say=lambda _: None)
    assert content(folder) == before
    changed = {f.name for f, at in times.items() if f.stat().st_mtime_ns != at}
    assert changed == {"train-00002.bin", "val-00002.bin"}


@pytest.mark.slow
def test_another_tokenizer_or_split_makes_all_anew_and_a_shorter_text_leaves_nothing_behind(
    tokens: ModuleType, recipe: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "shards"
    whole = recipe(folder)
    tokens.prepare(whole, workers=1, say=lambda _: None)
    assert all(tokens.finished(whole, number) for number in range(len(whole.units)))
    for other in (recipe(folder, tokenizer_sha256="another"), recipe(folder, validation_every=5)):
        assert not any(tokens.finished(other, number) for number in range(len(whole.units)))
    short = recipe(folder, units=whole.units[:2])
    manifest = tokens.prepare(short, workers=1, say=lambda _: None)
    assert {file.name for file in folder.glob("*.bin")} == {shard.file for shard in manifest.shards()}


@pytest.mark.slow
def test_killed_in_the_middle_it_leaves_no_process_and_keeps_what_was_finished(
    tokens: ModuleType, recipe: Callable[..., Any], raw: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "shards"
    path = os.pathsep.join([str(TRAINING), str(GPT2), str(Path.cwd())])
    script = tmp_path / "slow.py"

    def start(stops_in: str) -> subprocess.Popen[str]:
        script.write_text(SLOW.format(folder=str(folder), raw=str(raw), stops_in=stops_in), encoding="utf-8")
        command = [sys.executable, "-B", str(script)]
        return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, text=True)

    killed = start(str(folder))
    wait_until(lambda: len(list(folder.glob(".units/*.json"))) > 1, what="no two units are finished")
    children = psutil.Process(killed.pid).children(recursive=True)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert children
    assert psutil.wait_procs(children, timeout=LONG_S)[1] == []
    assert not (folder / "manifest.json").exists()
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("*.bin")}
    assert kept
    assert len(list(folder.glob(".units/*.json"))) < 6
    assert start("").wait() == 0
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    script.write_text("")
    whole = tmp_path / "whole"
    documents = sys.modules["trainkit.data.documents"]
    units = tuple(p for f in sorted(raw.iterdir()) for p in documents.pieces_of(f))
    tokens.prepare(recipe(whole, units=units, source={}), workers=1, say=lambda _: None)
    assert {n: c for n, c in content(folder).items() if not n.startswith(".")} == content(whole)


@pytest.mark.slow
def test_a_line_that_is_no_json_ends_all_processes_with_its_place(
    load: Import, tokens: ModuleType, error: type[Exception], recipe: Callable[..., Any], tmp_path: Path
) -> None:
    documents = load("trainkit.data.documents")
    files = []
    for name, broken in (("a", False), ("b", True), ("c", False)):
        file = tmp_path / f"{name}.jsonl"
        lines = [json.dumps({"text": f"text {i}"}) for i in range(600)]
        file.write_text("\n".join(["{oops", *lines] if broken else lines), encoding="utf-8")
        files += documents.pieces_of(file)
    folder = tmp_path / "shards"
    with pytest.raises(error, match=r'b.jsonl, byte 0: this line is not a JSON object with a string "text"'):
        tokens.prepare(recipe(folder, units=tuple(files)), workers=2, say=lambda _: None)
    assert not (folder / "manifest.json").exists()


def test_a_process_that_is_killed_ends_all_with_advice(
    tokens: ModuleType, error: type[Exception], recipe: Callable[..., Any], tmp_path: Path
) -> None:
    def kill_one(_: str) -> None:
        for child in psutil.Process().children(recursive=True):
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()

    slow = recipe(tmp_path / "shards", encoder=Letters(0.2))
    with pytest.raises(error, match=r"was killed, perhaps because memory ran out.*PREPARE_WORKERS=1\."):
        tokens.prepare(slow, workers=2, say=kill_one, every_s=0.1)


def test_progress_says_how_much_is_left(tokens: ModuleType) -> None:
    said = tokens._progress(30_000_000, 120_000_000, 10.0, ready=2, units=8)
    assert said == "data: 30.0 of 120.0 MB read, 2 of 8 shards, 3.0 MB/s, about 0 min left"
