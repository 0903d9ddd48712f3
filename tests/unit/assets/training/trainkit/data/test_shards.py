"""Token shards: what is written is read back, and what is wrong with them is said in one sentence."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path

TEXTS = {"train-00000.bin": [1, 2, 3], "train-00001.bin": [4, 5], "train-00002.bin": [6, 7, 8, 9]}


@pytest.fixture(autouse=True)
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def shards(load: Import) -> ModuleType:
    return load("trainkit.data.shards")


@pytest.fixture
def folder(shards: ModuleType, tmp_path: Path) -> Path:
    """Nine tokens in three shards, and two for validation."""
    for name, ids in {**TEXTS, "val-00000.bin": [1, 1]}.items():
        (tmp_path / name).write_bytes(np.array(ids, dtype="<u2").tobytes())

    def noted(name: str, tokens: int) -> object:
        return shards.Shard(name, tokens, shards.sha256_of(tmp_path / name))

    manifest = shards.Manifest(
        dtype="uint16",
        vocab_size=10,
        tokenizer_sha256="abc",
        source={"corpus": "test"},
        splits={
            "train": tuple(noted(name, len(ids)) for name, ids in TEXTS.items()),
            "val": (noted("val-00000.bin", 2),),
        },
    )
    shards.write_manifest(tmp_path, manifest)
    return tmp_path


def test_what_is_written_is_read_back(shards: ModuleType, folder: Path) -> None:
    manifest = shards.read_manifest(folder)
    assert (manifest.tokens("train"), manifest.tokens("val"), manifest.vocab_size) == (9, 2, 10)
    shards.check_sizes(folder, manifest)


def test_every_window_is_that_of_one_long_sequence(shards: ModuleType, folder: Path) -> None:
    tokens = shards.Tokens(folder, shards.read_manifest(folder), "train")
    assert len(tokens) == 9
    for start in range(10):
        for length in range(10 - start):
            assert list(tokens.window(start, length)) == list(range(start + 1, start + length + 1))
    for start, length in ((-1, 2), (8, 2), (9, 1)):
        with pytest.raises(IndexError):
            tokens.window(start, length)


def test_a_file_is_opened_for_the_first_window_in_it(
    shards: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    mapped = np.memmap

    def memmap(file: Path, **options: object) -> object:
        opened.append(file.name)
        return mapped(file, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "memmap", memmap)
    tokens = shards.Tokens(folder, shards.read_manifest(folder), "train")
    assert opened == []
    tokens.window(3, 2)
    tokens.window(4, 3)
    assert opened == ["train-00001.bin", "train-00002.bin"]


def test_ids_that_two_bytes_cannot_hold_take_four(shards: ModuleType) -> None:
    assert (shards.dtype_of(65_536), shards.dtype_of(65_537)) == ("uint16", "uint32")


def test_a_folder_without_a_manifest_is_not_whole(shards: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(shards.ShardError, match=r"manifest.json is missing, so this data is incomplete"):
        shards.read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a manifest"),
        ("{}", "is not a manifest"),
        ('{"format": 2}', "has format 2, and this program reads 1"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(
    shards: ModuleType, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(shards.ShardError, match=said):
        shards.read_manifest(tmp_path)


def test_a_shard_of_another_size_is_told_without_reading_it(shards: ModuleType, folder: Path) -> None:
    with (folder / "train-00001.bin").open("ab") as file:
        file.write(b"x")
    with pytest.raises(
        shards.ShardError, match=r"train-00001.bin is corrupt: it has 5 bytes, .* says 4; delete it"
    ):
        shards.check_sizes(folder, shards.read_manifest(folder))
    (folder / "train-00001.bin").unlink()
    with pytest.raises(shards.ShardError, match=r"train-00001.bin is missing: submit again"):
        shards.check_sizes(folder, shards.read_manifest(folder))


def test_the_manifest_says_format_and_type(folder: Path) -> None:
    noted = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (noted["format"], noted["dtype"], noted["splits"]["train"][1]["tokens"]) == (1, "uint16", 2)
