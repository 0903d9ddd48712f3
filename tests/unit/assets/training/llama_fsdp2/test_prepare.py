"""prepare.py of llama-fsdp2: what it reads, finds done and refuses; no tokenizer package is here."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import LLAMA, Import, workload_on_the_path
from training_cluster.paths import TRAINING

Prepare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "llama-fsdp2") as load:
        yield load


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """DATA_DIR with some text of one's own."""
    raw = tmp_path / "data" / "raw"
    raw.mkdir(parents=True)
    (raw / "a.txt").write_text("A line of text.\n\n" * 1000, encoding="utf-8")
    (raw / "b.jsonl").write_text('{"text": "one"}\n\n{"text": "two", "url": "-"}\n', encoding="utf-8")
    (raw / "notes.md").write_text("not for training", encoding="utf-8")
    return raw.parent


@pytest.fixture
def prepare(data: Path, tmp_path: Path) -> Prepare:
    """Runs prepare.py as prepare.sh does."""
    (tmp_path / "run").mkdir()

    def start(**env: str) -> subprocess.CompletedProcess[str]:
        job = {
            "DATA_DIR": str(data),
            "RUN_DIR": str(tmp_path / "run"),
            "PYTHONPATH": str(TRAINING),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LLAMA_SIZE": "tiny",
        }
        return subprocess.run(
            [sys.executable, str(LLAMA / "prepare.py")],
            env={"PATH": os.environ["PATH"], **job, **env},
            capture_output=True,
            text=True,
        )

    return start


def test_own_files_are_read_as_blocks_and_as_json_lines(load: Import, data: Path) -> None:
    text = load("text")
    blocks, lines = (list(text.documents_of(unit)) for unit in text.units("raw", data=data))
    assert "".join(block for block, _ in blocks) == "A line of text.\n\n" * 1000
    assert len(blocks) > 3
    assert sum(size for _, size in blocks) == 17_000
    assert [document for document, _ in lines] == ["one", "two"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{text}", 'no JSON object with a "text"'),
        ('{"body": "x"}', 'no JSON object with a "text"'),
        ('{"text": 3}', 'its "text" is 3, and no string'),
    ],
)
def test_a_line_without_a_text_is_named(load: Import, data: Path, line: str, said: str) -> None:
    text, file = load("text"), data / "raw" / "b.jsonl"
    file.write_text(f'{{"text": "fine"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(load("trainkit.data.shards").ShardError) as error:
        list(text.json_lines(file))
    assert f"{file}, line 2: {said}" in str(error.value)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"CORPUS": "wikipedia"}, 'CORPUS is "wikipedia"; allowed: raw, machine.'),
        ({"TOKENIZER": "/nowhere/tokenizer.json"}, "there is no file /nowhere/tokenizer.json: give the path"),
        ({"VOCAB_SIZE": "200"}, "VOCAB_SIZE is 200: give 257 or more."),
        ({"PREPARE_WORKERS": "two"}, "PREPARE_WORKERS is 'two': give a whole number from 1 to 1024."),
        ({"LLAMA_SIZE": "13b"}, 'LLAMA_SIZE is "13b"; allowed: tiny, 125m, 1b, 8b.'),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_in_one_line(
    prepare: Prepare, env: dict[str, str], said: str
) -> None:
    done = prepare(**env)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_without_text_it_says_where_to_put_some(prepare: Prepare, data: Path) -> None:
    for file in (data / "raw").iterdir():
        file.unlink()
    done = prepare()
    assert f"prepare.py: there is no text: put *.txt or *.jsonl into {data / 'raw'}" in done.stderr


def test_shards_are_found_again_and_made_anew_only_for_another_text(
    load: Import, prepare: Prepare, data: Path, tmp_path: Path
) -> None:
    shards, text, made = load("trainkit.data.shards"), load("text"), data / "raw-vocab-2048"
    made.mkdir()
    (made / "train-00000.bin").write_bytes(bytes(20))
    shard = shards.Shard("train-00000.bin", 10, shards.sha256_of(made / "train-00000.bin"))
    manifest = shards.Manifest(
        dtype="uint16",
        vocab_size=300,
        tokenizer_sha256="abc",
        source={"fingerprint": text.fingerprint("raw", data=data)},
        splits={"train": (shard,), "val": ()},
    )
    shards.write_manifest(made, manifest)
    done = prepare()
    assert (done.returncode, done.stdout) == (0, f"data: {made} is there\n")
    assert json.loads((tmp_path / "run/data.json").read_text())["shards"] == str(made)

    shards.write_manifest(made, dataclasses.replace(manifest, source={"fingerprint": "of other text"}))
    assert "No module named 'tokenizers'" in prepare().stderr, "it set about making them"


def test_shards_without_their_text_are_taken_as_they_are(load: Import, prepare: Prepare, data: Path) -> None:
    shards, made = load("trainkit.data.shards"), data / "raw-vocab-2048"
    for file in (data / "raw").iterdir():
        file.unlink()
    made.mkdir()
    shards.write_manifest(
        made,
        shards.Manifest(
            dtype="uint16",
            vocab_size=300,
            tokenizer_sha256="abc",
            source={"fingerprint": "of text that is elsewhere"},
            splits={"train": (), "val": ()},
        ),
    )
    # The family's precision (V100) is none of its business: an argument of train.py may win over it.
    assert prepare(MIXED_PRECISION="fp16").stdout == f"data: {made} is there\n"
