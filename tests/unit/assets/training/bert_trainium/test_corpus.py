"""The text that bert-trainium trains on, and its vocabulary: Wikipedia's from a hub on this machine."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.trainkit.data.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import Import

EDITION = "20231101.en"
WIKIPEDIA = f"wikipedia-{EDITION}"
WORDS = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n"


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CORPUS", "WIKIPEDIA_EDITION", "VOCAB_SIZE", "TRAINING_BUCKET", "VALIDATION_EVERY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATOR_KIND", "neuron")


@pytest.fixture
def corpus(load: Import) -> ModuleType:
    return load("corpus")


@pytest.fixture
def served(
    load: Import, tmp_path: Path, corpus: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hub]:
    """A hub with two files of English Wikipedia, and a small vocabulary in the place of the published one."""
    articles = tmp_path / "hub" / "datasets" / load("trainkit.data.hub_text").REPOSITORY / EDITION
    model = tmp_path / "hub" / "models" / corpus.PUBLISHED
    for folder in (articles, model):
        folder.mkdir(parents=True)
    for number in (1, 0):
        (articles / f"train-0000{number}-of-00002.parquet").write_bytes(b"0123456789" * 1000)
    (model / "vocab.txt").write_bytes(WORDS)
    monkeypatch.setattr(corpus, "PUBLISHED_SHA256", hashlib.sha256(WORDS).hexdigest())
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def vocabulary(corpus: ModuleType, data: Path, name: str = WIKIPEDIA, size: int = 30522) -> Any:
    return corpus.vocabulary(name, data=data, size=size, bucket=None)


def test_own_text_wins_unless_a_corpus_is_named(corpus: ModuleType, tmp_path: Path) -> None:
    assert corpus.choose("", data=tmp_path) == WIKIPEDIA
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "vocab.txt").write_bytes(WORDS)
    assert corpus.choose("", data=tmp_path) == WIKIPEDIA, "a vocabulary is no text"
    (tmp_path / "raw" / "a.txt").write_text("text", encoding="utf-8")
    assert corpus.choose("", data=tmp_path) == "raw"
    assert corpus.choose("wikipedia", data=tmp_path) == WIKIPEDIA
    assert corpus.choose("wikipedia", data=tmp_path, edition="20231101.simple") == "wikipedia-20231101.simple"
    assert corpus.choose("machine", data=tmp_path) == "machine"


def test_an_unknown_corpus_or_edition_is_refused(corpus: ModuleType, tmp_path: Path) -> None:
    for wanted, edition, said in (
        ("openwebtext", EDITION, 'CORPUS is "openwebtext"; allowed: wikipedia, machine, raw'),
        ("wikipedia", "en", 'WIKIPEDIA_EDITION is "en": give a date and a language'),
    ):
        with pytest.raises(corpus.ShardError, match=said):
            corpus.choose(wanted, data=tmp_path, edition=edition)


def test_wikipedia_has_the_vocabulary_of_bert(corpus: ModuleType, served: Hub, tmp_path: Path) -> None:
    found = vocabulary(corpus, tmp_path)
    assert served.requests == [], "shards that exist need no vocabulary"
    for _ in range(2):
        assert found.ensure().read_bytes() == WORDS
    (asked,) = served.requests
    assert asked[0] == f"/{corpus.PUBLISHED}/resolve/{corpus.PUBLISHED_REVISION}/vocab.txt"


def test_an_own_vocabulary_wins_over_the_published_one(corpus: ModuleType, tmp_path: Path) -> None:
    """A vocabulary is trained if none is given that fits."""
    for name, size in (
        (WIKIPEDIA, 2048),
        ("wikipedia-20231101.de", 30522),
        ("raw", 30522),
        ("machine", 30522),
    ):
        assert vocabulary(corpus, tmp_path, name, size=size) is None
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "vocab.txt").write_bytes(WORDS)
    found = vocabulary(corpus, tmp_path)
    assert (found.ensure(), found.url) == (tmp_path / "raw" / "vocab.txt", None)
    assert vocabulary(corpus, tmp_path, "machine") is None


def test_shards_of_wikipedia_need_no_hub(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster without a way to the internet trains on what another one has made."""
    data, run = tmp_path / "data", tmp_path / "run"
    run.mkdir()
    for name, value in {"DATA_DIR": data, "RUN_DIR": run, "HF_ENDPOINT": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, str(value))
    prepare = load("prepare")
    shards = load("trainkit.data.shards")
    folder = data / f"{WIKIPEDIA}-given-07eced37-128"
    folder.mkdir(parents=True)
    source = {
        "fingerprint": load("trainkit.data.hub_text").wikipedia_text(WIKIPEDIA).fingerprint,
        "validation_every": 20,
    }
    shards.write_manifest(
        folder,
        shards.Manifest(
            dtype="uint16",
            vocab_size=30522,
            tokenizer_sha256="0",
            source=source,
            splits={"train": (), "val": ()},
        ),
    )
    prepare.run()
    assert json.loads((run / "data.json").read_text(encoding="utf-8")) == {"shards": str(folder)}
