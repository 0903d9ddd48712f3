"""gpt2-megatron's choice and preparation of a text; no tokenizer package is here."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.data.hub_server import hub_server
from tests.unit.assets.training.workload_modules import Import, Letters, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2-megatron") as load:
        yield load


@pytest.mark.slow
def test_a_file_that_was_written_anew_at_the_same_size_is_tokenized_anew(
    load: Import, tmp_path: Path
) -> None:
    documents, tokens = load("trainkit.data.documents"), load("trainkit.data.prepare_tokens")
    file, shards = tmp_path / "raw" / "text.jsonl", tmp_path / "shards"
    file.parent.mkdir()

    def shard_of(text: str, *, written_at: int) -> bytes:
        file.write_text(json.dumps({"text": text}) + "\n")
        os.utime(file, ns=(written_at, written_at))
        recipe = load("trainkit.data.tokenize_unit").Recipe(
            folder=shards,
            units=tuple(documents.pieces_of(file)),
            read=documents.documents_of,
            encoder=Letters(),
            vocab_size=257,
            tokenizer_sha256="letters",
            source={},
            validation_every=2,
        )
        tokens.prepare(recipe, workers=1, say=lambda _: None)
        return (shards / "train-00000.bin").read_bytes()

    assert shard_of("hello", written_at=1) == b"h\0e\0l\0l\0o\0\0\1"
    assert shard_of("WORLD", written_at=2) == b"W\0O\0R\0L\0D\0\0\1"


def test_wikipedia_is_read_from_the_hub(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, hub_text = load("prepare"), load("trainkit.data.hub_text")
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("CORPUS", "WIKIPEDIA_EDITION", "VOCAB_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert prepare.read_config().folder == tmp_path / "wikipedia-20231101.en-vocab-50257"
    monkeypatch.setenv("WIKIPEDIA_EDITION", "20231101.simple")
    articles = tmp_path / "hub" / "datasets" / hub_text.REPOSITORY / "20231101.simple"
    articles.mkdir(parents=True)
    (articles / "train-00000-of-00001.parquet").write_bytes(b"0123456789")
    with hub_server(tmp_path / "hub") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        config = prepare.read_config()
        (unit,) = prepare.units_of(config)
    assert unit.file == tmp_path / "downloads" / "wikipedia-20231101.simple" / "train-00000-of-00001.parquet"
    assert config.fingerprint == f"{hub_text.REPOSITORY}@{hub_text.REVISION}"
    assert prepare.downloaded(config) == "; 0.0 MB downloaded"
