"""DATA_DIR/raw: what is read there, in which pieces, and how it is cut into documents."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path

Documents = ModuleType


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def documents(load: Import) -> Documents:
    return load("trainkit.data.documents")


def read(documents: Documents, file: Path, *, piece_bytes: int) -> str:
    """All documents of all pieces of a file, one after another."""
    pieces = documents.pieces_of(file, piece_bytes=piece_bytes)
    return "".join(text for piece in pieces for text, _ in documents.documents_of(piece))


def test_files_of_the_three_kinds_are_the_text_and_no_other(documents: Documents, tmp_path: Path) -> None:
    assert documents.own_files(tmp_path) == []
    assert documents.fingerprint_of([]) is None
    (tmp_path / "raw" / "gpt2_bpe").mkdir(parents=True)
    for name in ("c.txt", "b.jsonl", "a.parquet", "vocab.txt", "wiki.zip", "notes.md", "gpt2_bpe/dict.txt"):
        (tmp_path / "raw" / name).touch()
    found = documents.own_files(tmp_path, without={"vocab.txt"})
    assert [file.name for file in found] == ["a.parquet", "b.jsonl", "c.txt"]


@pytest.mark.parametrize("piece_bytes", [1, 7, 100, 1000, 10**6])
def test_pieces_of_a_text_are_together_the_text_wherever_it_is_cut(
    documents: Documents, tmp_path: Path, piece_bytes: int
) -> None:
    file = tmp_path / "a.txt"
    text = "".join(f"line {i} of it: äöü €\n" + "\n" * (i % 3) for i in range(60)) + "no end"
    file.write_text(text, encoding="utf-8")
    pieces = documents.pieces_of(file, piece_bytes=piece_bytes)
    assert sum(piece.size_bytes for piece in pieces) == file.stat().st_size
    assert (
        len({piece.fingerprint for piece in pieces}) == len({piece.name for piece in pieces}) == len(pieces)
    )
    found = [document for piece in pieces for document in documents.documents_of(piece)]
    assert "".join(text for text, _ in found) == text
    assert sum(size for _, size in found) == file.stat().st_size


def test_a_big_file_is_cut_but_for_parquet_and_an_empty_text_is_no_piece(
    documents: Documents, tmp_path: Path
) -> None:
    for name, size in {"a.txt": 2**26 + 1, "b.jsonl": 2**27, "c.parquet": 2**27, "d.txt": 0}.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    counts = {file.name: len(documents.pieces_of(file)) for file in sorted(tmp_path.iterdir())}
    assert counts == {"a.txt": 2, "b.jsonl": 2, "c.parquet": 1, "d.txt": 0}


def test_a_line_longer_than_memory_should_hold_is_read_in_parts(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LINE_BYTES", 10)
    file = tmp_path / "a.txt"
    text = "é" * 33 + "\nnext\n" + "ü" * 20
    file.write_text(text, encoding="utf-8")
    for size in (8, 10**6):
        pieces = documents.pieces_of(file, piece_bytes=size)
        parts = [part for piece in pieces for part in documents.text_lines(piece)]
        assert "".join(parts) == text
        assert max(len(part) for part in parts) <= 10


@pytest.mark.parametrize("before", [2**20 - 3, 2**20 - 2, 2**20 - 1, 2**20])
@pytest.mark.parametrize("character", ["é", "€", "😀"])
def test_a_character_where_a_long_line_is_read_in_parts_stays_whole(
    documents: Documents, tmp_path: Path, before: int, character: str
) -> None:
    file = tmp_path / "text.txt"
    text = "a" * before + f"{character} and more\n"
    file.write_text(text, encoding="utf-8")
    assert read(documents, file, piece_bytes=2**26) == text


def test_what_is_no_utf_8_is_read_all_the_same(documents: Documents, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 and more\n")
    assert read(documents, tmp_path / "a.txt", piece_bytes=2**26) == "caf\ufffd and more\n"


@pytest.mark.parametrize("piece_bytes", [5, 100, 10**6])
def test_json_lines_give_their_text_each_once(documents: Documents, tmp_path: Path, piece_bytes: int) -> None:
    file = tmp_path / "a.jsonl"
    texts = ["one", "two\nlines", "", *(f"Text {number}. " * (number % 5) for number in range(40))]
    lines = [json.dumps({"text": text, "more": 1}) for text in texts]
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    pieces = documents.pieces_of(file, piece_bytes=piece_bytes)
    assert [text for piece in pieces for text, _ in documents.documents_of(piece)] == texts


@pytest.mark.parametrize("line", ["[]", '{"text": 1}', '{"other": ""}', "x"])
def test_a_line_that_is_no_document_is_named(
    load: Import, documents: Documents, tmp_path: Path, line: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"text": ""}}\n{line}\n', encoding="utf-8")
    error = load("trainkit.data.shards").ShardError
    with pytest.raises(error, match=r'a.jsonl, byte 13: this line is not a JSON object with a string "text"'):
        read(documents, file, piece_bytes=2**26)


def test_a_file_written_anew_at_the_same_size_is_another(documents: Documents, tmp_path: Path) -> None:
    file, found = tmp_path / "a.jsonl", []
    for text, written_at in (("hello", 1), ("WORLD", 2)):
        file.write_text(json.dumps({"text": text}), encoding="utf-8")
        os.utime(file, ns=(written_at, written_at))
        found.append((documents.fingerprint_of([file]), documents.pieces_of(file)[0].fingerprint))
    assert set(found[0]).isdisjoint(found[1])


def test_a_sample_has_all_of_a_small_corpus_and_the_beginnings_of_units_spread_over_a_large_one(
    documents: Documents,
) -> None:
    def read(unit: int) -> Iterator[tuple[str, int]]:
        return ((f"{unit}.{number}", 1) for number in range(1000))

    assert len(list(documents.sample(range(3), read=read))) == 3000
    found = list(documents.sample(range(80), read=read, characters=80))
    assert {text.partition(".")[0] for text in found} == {str(unit) for unit in range(0, 80, 10)}
    assert len(found) < 80


def test_blocks_together_are_the_text_and_end_at_empty_lines(documents: Documents) -> None:
    lines = [line for i in range(40) for line in (f"a line with the number {i}\n", "\n")]
    blocks = list(documents.blocks(lines, characters=100))
    assert "".join(blocks) == "".join(lines)
    assert len(blocks) > 5
    assert all(block.endswith("\n\n") for block in blocks)


def test_text_without_empty_lines_is_cut_all_the_same(documents: Documents) -> None:
    blocks = list(documents.blocks(["x" * 99 + "\n"] * 100, characters=1000))
    assert [len(block) for block in blocks] == [2000] * 5
