"""Token shards: what is written is read back, and what is wrong with them is said in one sentence."""

import json
from pathlib import Path

import numpy as np
import pytest
from trainkit.data import shards
from trainkit.data.shards import Manifest, Shard, ShardError, Tokens, read_manifest

TEXTS = {"train-00000.bin": [1, 2, 3], "train-00001.bin": [4, 5], "train-00002.bin": [6, 7, 8, 9]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine tokens in three shards, and two for validation."""
    noted = {}
    for name, ids in {**TEXTS, "val-00000.bin": [1, 1]}.items():
        (tmp_path / name).write_bytes(np.array(ids, dtype="<u2").tobytes())
        noted[name] = Shard(name, len(ids), shards.sha256_of(tmp_path / name))
    splits = {"train": tuple(noted[name] for name in TEXTS), "val": (noted["val-00000.bin"],)}
    manifest = Manifest(
        dtype="uint16", vocab_size=10, tokenizer_sha256="abc", source={"corpus": "test"}, splits=splits
    )
    shards.write_manifest(tmp_path, manifest)
    return tmp_path


def test_a_manifest_is_read_back(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert (manifest.tokens("train"), manifest.tokens("val"), manifest.vocab_size) == (9, 2, 10)
    noted = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (noted["format"], noted["dtype"], noted["splits"]["train"][1]["tokens"]) == (1, "uint16", 2)
    assert (shards.dtype_of(65_536), shards.dtype_of(65_537)) == ("uint16", "uint32")


def test_windows_are_those_of_one_sequence(folder: Path) -> None:
    tokens = Tokens(folder, read_manifest(folder), "train")
    assert len(tokens) == 9
    for start in range(10):
        for length in range(10 - start):
            assert list(tokens.window(start, length)) == list(range(start + 1, start + length + 1))
    for start, length in ((-1, 2), (8, 2), (9, 1)):
        with pytest.raises(IndexError):
            tokens.window(start, length)


def test_a_file_is_opened_for_its_first_window(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    mapped = np.memmap

    def memmap(file: Path, **options: object) -> object:
        opened.append(file.name)
        return mapped(file, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "memmap", memmap)
    tokens = Tokens(folder, read_manifest(folder), "train")
    assert opened == []
    tokens.window(3, 2)
    tokens.window(4, 3)
    assert opened == ["train-00001.bin", "train-00002.bin"]


def test_a_wrong_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"manifest.json is missing, so this data is incomplete"):
        read_manifest(tmp_path)
    for text, said in {
        "{": "is not a manifest",
        "{}": "is not a manifest",
        '{"format": 1, "splits": []}': "is not a manifest",
        '{"format": 1, "splits": {"train": []}}': "is not a manifest of token shards .KeyError..val",
        '{"format": 2}': "has format 2, and this program reads 1",
    }.items():
        (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(ShardError, match=said):
            read_manifest(tmp_path)
