"""The vocabulary of bert-trainium: Wikipedia's from a hub on this machine, or your own."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from trainkit.data.hub_text import wikipedia

from tests.unit.assets.training.trainkit.data.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import Import

WORDS = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n"


@pytest.fixture
def vocabulary(load: Import) -> ModuleType:
    return load("vocabulary")


@pytest.fixture
def served(tmp_path: Path, vocabulary: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a small vocabulary in the place of the published one."""
    model = tmp_path / "hub" / "models" / vocabulary.PUBLISHED
    model.mkdir(parents=True)
    (model / "vocab.txt").write_bytes(WORDS)
    monkeypatch.setattr(vocabulary, "PUBLISHED_SHA256", hashlib.sha256(WORDS).hexdigest())
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def found_for(
    vocabulary: ModuleType,
    data: Path,
    name: str = "wikipedia",
    *,
    edition: str = "20231101.en",
    size: int = 30522,
) -> Any:
    with pytest.MonkeyPatch.context() as given:
        given.setenv("WIKIPEDIA_EDITION", edition)
        text = wikipedia() if name == "wikipedia" else None
    return vocabulary.find_vocabulary(name, text, data=data, size=size, bucket=None)


def test_wikipedia_has_the_vocabulary_of_bert(vocabulary: ModuleType, served: Hub, tmp_path: Path) -> None:
    found = found_for(vocabulary, tmp_path)
    assert served.requests == [], "shards that exist need no vocabulary"
    for _ in range(2):
        assert found.ensure().read_bytes() == WORDS
    (asked,) = served.requests
    assert asked[0] == f"/{vocabulary.PUBLISHED}/resolve/{vocabulary.PUBLISHED_REVISION}/vocab.txt"


def test_an_own_vocabulary_wins_over_the_published_one(vocabulary: ModuleType, tmp_path: Path) -> None:
    """A vocabulary is trained if none is given that fits."""
    assert found_for(vocabulary, tmp_path, size=2048) is None
    assert found_for(vocabulary, tmp_path, edition="20231101.de") is None
    for name in ("raw", "machine"):
        assert found_for(vocabulary, tmp_path, name) is None
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "vocab.txt").write_bytes(WORDS)
    found = found_for(vocabulary, tmp_path)
    assert (found.ensure(), found.url) == (tmp_path / "raw" / "vocab.txt", None)
    assert found_for(vocabulary, tmp_path, "machine") is None
