"""Token shards of one's own text: the folder of the text."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path


@pytest.fixture
def text_shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load("trainkit.data.text_shards")


def made(text_shards: ModuleType, tmp_path: Path, name: str, **changes: Any) -> Any:
    values = {"tokenizer": None, "vocab_size": 400, "validation_every": 5, "workers": 1} | changes
    return text_shards.TextShards(data=tmp_path / "titan", name=name, **values)


@pytest.mark.parametrize(
    ("name", "file"),
    [("raw", "titan/raw/a.txt"), ("corpus", "corpus/a.txt"), ("gpt2", "gpt2/raw/a.txt")],
)
def test_a_text_is_found_by_its_name(text_shards: ModuleType, tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("text")
    assert made(text_shards, tmp_path, name).files == [tmp_path / file]


def test_no_text_is_one_sentence(text_shards: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(text_shards.ShardError, match=f"put .* into {tmp_path / 'corpus'}"):
        made(text_shards, tmp_path, "corpus").ensure(None)
