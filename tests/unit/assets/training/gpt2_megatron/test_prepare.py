"""gpt2-megatron's preparation of one's own text; no tokenizer package is here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

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
