"""The text that gpt2 trains on: the machine's or the user's own."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture(autouse=True)
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def corpus(load: Import) -> ModuleType:
    return load("corpus")


def test_own_text_is_taken_where_there_is_any_unless_another_corpus_is_named(
    corpus: ModuleType, tmp_path: Path
) -> None:
    assert corpus.choose("", data=tmp_path) == "openwebtext"
    (tmp_path / "raw").mkdir()
    for name in ("b.txt", "a.jsonl", "ignored.md"):
        (tmp_path / "raw" / name).write_text('{"text": "x"}\n', encoding="utf-8")
    assert corpus.choose("", data=tmp_path) == "raw"
    assert [unit.name for unit in corpus.units("raw", data=tmp_path)] == ["a.jsonl", "b.txt"]
    assert corpus.choose("machine", data=tmp_path) == "machine"


def test_a_corpus_that_there_is_not_is_refused_with_those_that_there_are(
    load: Import, corpus: ModuleType, tmp_path: Path
) -> None:
    error = load("trainkit.data.shards").ShardError
    with pytest.raises(error, match='CORPUS is "wikipedia"; allowed: openwebtext, machine, raw'):
        corpus.choose("wikipedia", data=tmp_path)
    with pytest.raises(error, match=r"there is no text for CORPUS=raw: put \*.txt, .* into .*/raw"):
        corpus.units("raw", data=tmp_path)


def test_the_fingerprint_changes_with_the_text_and_only_then(corpus: ModuleType, tmp_path: Path) -> None:
    assert corpus.fingerprint("raw", data=tmp_path) is None, "tokens without their text are taken as they are"
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("one", encoding="utf-8")
    one = corpus.fingerprint("raw", data=tmp_path)
    assert one == corpus.fingerprint("raw", data=tmp_path)
    (tmp_path / "raw" / "a.txt").write_text("two!", encoding="utf-8")
    assert corpus.fingerprint("raw", data=tmp_path) != one


def test_openwebtext_is_one_revision_of_the_hubs(corpus: ModuleType, tmp_path: Path) -> None:
    assert corpus.fingerprint("openwebtext", data=tmp_path) == (
        "Skylion007/openwebtext@79d93d786212f7344586290adb811d4ae6a1762c"
    )
