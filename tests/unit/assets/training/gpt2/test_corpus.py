"""The text that gpt2 trains on: the machine's or the user's own."""

from __future__ import annotations

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
def machine_text(load: Import) -> ModuleType:
    return load("trainkit.data.corpus")


@pytest.fixture
def corpus(load: Import) -> ModuleType:
    return load("corpus")


@pytest.fixture
def stdlib(tmp_path: Path) -> Path:
    folder = tmp_path / "stdlib"
    for name, source in {
        "b.py": '"""Module b."""\nraise RuntimeError("imported")\n',
        "a.py": '"""Module a."""\nclass A:\n    """Class A."""\n    def f(self):\n        """Method f."""\n',
        "silent.py": "x = 1\n",
        "broken.py": "def (:\n",
        "test/test_a.py": '"""A test."""\n',
        "site-packages/other.py": '"""Someone else\'s."""\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    return folder


def test_documentation_is_read_from_source_and_nothing_is_imported(
    machine_text: ModuleType, stdlib: Path
) -> None:
    assert list(machine_text.documentation(stdlib)) == ["Module a.\n\nClass A.\n\nMethod f.", "Module b."]


def test_text_of_the_machine_is_gathered_once(machine_text: ModuleType, stdlib: Path, tmp_path: Path) -> None:
    licences = tmp_path / "licences"
    licences.mkdir()
    (licences / "MIT-2").write_text("Permission is granted.\n", encoding="utf-8")
    (licences / "MIT").symlink_to("MIT-2")

    def gather() -> list[Path]:
        found: list[Path] = machine_text.gather(tmp_path / "to", licences=licences, stdlib=stdlib)
        return found

    first, second = gather()
    assert first.read_text(encoding="utf-8") == "Permission is granted.\n"
    assert "Class A." in second.read_text(encoding="utf-8")
    before = second.stat().st_mtime_ns
    assert gather()[1].stat().st_mtime_ns == before
    (licences / "BSD").write_text("Redistribution and use are permitted.\n", encoding="utf-8")
    assert "Redistribution" in gather()[0].read_text(encoding="utf-8")


def test_a_machine_without_licences_still_has_documentation(
    machine_text: ModuleType, stdlib: Path, tmp_path: Path
) -> None:
    (only,) = machine_text.gather(tmp_path / "to", licences=tmp_path / "none", stdlib=stdlib)
    assert only.name == "documentation.txt"


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


def test_blocks_together_are_the_text_and_end_at_empty_lines(machine_text: ModuleType) -> None:
    lines = [line for i in range(40) for line in (f"a line with the number {i}\n", "\n")]
    blocks = list(machine_text.blocks(lines, characters=100))
    assert "".join(blocks) == "".join(lines)
    assert len(blocks) > 5
    assert all(block.endswith("\n\n") for block in blocks)


def test_text_without_empty_lines_is_cut_all_the_same(machine_text: ModuleType) -> None:
    blocks = list(machine_text.blocks(["x" * 99 + "\n"] * 100, characters=1000))
    assert [len(block) for block in blocks] == [2000] * 5
