"""DATA_DIR/raw: what is read there, in which pieces, and how it is cut into documents and words."""

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from trainkit.data import documents, words
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Part, split_of

MORE = ("part/c4.json.gz", "part/d.jsonl.zst", "part/.hidden.txt", "part/settings.json", "part/e.parquet.gz")


def read(file: Path, *, piece_bytes: int = 2**26) -> list[str]:
    """Return all documents of all pieces of a file."""
    pieces = documents.pieces_of(file, file.parent, piece_bytes=piece_bytes)
    return [text for piece in pieces for text, _ in documents.documents_of(piece)]


def test_files_of_three_kinds_are_the_text(tmp_path: Path) -> None:
    assert documents.own_files(tmp_path) == []
    assert documents.fingerprint_of([], tmp_path) is None
    (tmp_path / "raw" / "gpt2_bpe").mkdir(parents=True)
    for name in (
        "c.txt",
        "b.jsonl",
        "a.parquet",
        "vocab.txt",
        "wiki.zip",
        "notes.md",
        "gpt2_bpe/dict.txt",
        *MORE,
    ):
        (tmp_path / "raw" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "raw" / name).touch()
    found = documents.own_files(tmp_path, without={"vocab.txt", "gpt2_bpe"})
    named = [file.relative_to(tmp_path / "raw").as_posix() for file in found]
    assert named == ["a.parquet", "b.jsonl", "c.txt", *MORE[:2]]


def test_pieces_of_a_text_are_the_text(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    text = "".join(f"line {i} of it: äöü €\n" + "\n" * (i % 3) for i in range(60)) + "no end"
    file.write_text(text, encoding="utf-8")
    for piece_bytes in (1, 7, 100, 1000, 10**6):
        pieces = documents.pieces_of(file, tmp_path, piece_bytes=piece_bytes)
        assert sum(piece.size_bytes for piece in pieces) == file.stat().st_size
        assert len({e.fingerprint for e in pieces}) == len({e.name for e in pieces}) == len(pieces)
        found = [document for piece in pieces for document in documents.documents_of(piece)]
        assert "".join(text for text, _ in found) == text
        assert sum(size for _, size in found) == file.stat().st_size


def test_big_files_are_cut_into_pieces(tmp_path: Path) -> None:
    for name, size in {
        "a.txt": 2**26 + 1,
        "b.jsonl": 2**27,
        "c.parquet": 2**27,
        "d.txt": 0,
        "e.gz": 2**27,
    }.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    counts = {file.name: len(documents.pieces_of(file, tmp_path)) for file in sorted(tmp_path.iterdir())}
    assert counts == {"a.txt": 2, "b.jsonl": 2, "c.parquet": 4, "d.txt": 0, "e.gz": 1}
    (tmp_path / "big.txt").write_text("x\n" * 500)
    pieces = documents.pieces_of(tmp_path / "big.txt", tmp_path, piece_bytes=100)
    assert len({split_of(piece, 0, validation_every=2) for piece in pieces}) == 1


def test_a_long_line_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LINE_BYTES", 10)
    file = tmp_path / "a.txt"
    text = "é" * 33 + "\nnext\n" + "ü" * 20
    file.write_text(text, encoding="utf-8")
    for size in (8, 10**6):
        pieces = documents.pieces_of(file, tmp_path, piece_bytes=size)
        lines = (line for piece in pieces for _, line in documents.raw_lines(piece, limit=10))
        parts = list(documents.decoded(lines))
        assert "".join(parts) == text
        assert max(len(part) for part in parts) <= 10
    # Characters of two to four bytes, wherever the parts end.
    for text in (f"{'a' * before}{end} more\n" for before in range(7, 11) for end in "é€😀"):
        file.write_text(text, encoding="utf-8")
        assert "".join(read(file)) == text


def test_bytes_that_are_not_utf_8_are_replaced(tmp_path: Path) -> None:
    for end in (" and more\n", ""):
        (tmp_path / "a.txt").write_bytes(b"caf\xe9" + end.encode())
        assert "".join(read(tmp_path / "a.txt")) == f"caf\ufffd{end}"


def test_json_lines_give_their_text_each_once(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    texts = ["one", "two\nlines", "", *(f"Text {number}. " * (number % 5) for number in range(40))]
    lines = [json.dumps({"text": text, "more": 1}) for text in texts]
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    for piece_bytes in (5, 100, 10**6):
        assert read(file, piece_bytes=piece_bytes) == texts
    for line in ("[]", '{"text": 1}', '{"other": ""}', "x"):
        file.write_text(f'{{"text": ""}}\n{line}\n', encoding="utf-8")
        with pytest.raises(
            ShardError, match=r"a.jsonl, byte 13: this line is not a JSON object with a string"
        ):
            read(file)


def test_compressed_files_are_read(tmp_path: Path) -> None:
    files = {"a.txt.gz": b"one\n", "b/c.json.gz": b'{"text": "two"}\n'}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(content))
    (unit,) = documents.units_of(documents.text_files(tmp_path), tmp_path, validation_every=20)
    assert [text for text, _ in documents.documents_of(unit)] == ["one\n", "two"]
    assert unit.size_bytes > 4 * sum(map(len, files.values()))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one" * 999)[:-20])
    with pytest.raises(ShardError, match=r"a\.txt\.gz cannot be read .*: replace it, and submit again"):
        list(documents.documents_of(unit))


@pytest.mark.parametrize("text", ["x\n" * 500, "y" * 450 + "\n", "y\n" + "x" * 450, "x" * 99 + "\n"])
def test_a_document_of_many_pieces_ends_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "big.txt").write_text(text)
    for size in (50, 100, 1000):
        found = [
            part
            for piece in documents.pieces_of(tmp_path / "big.txt", tmp_path, piece_bytes=size)
            for part, _ in documents.documents_of(piece)
        ]
        assert "".join(found) == text
        assert [type(part) is Part for part in found] == [*[True] * (len(found) - 1), False]


def test_a_file_that_is_written_anew_is_another(tmp_path: Path) -> None:
    file, found = tmp_path / "a.jsonl", []
    for text, written_at in (("hello", 1), ("WORLD", 2)):
        file.write_text(json.dumps({"text": text}), encoding="utf-8")
        os.utime(file, ns=(written_at, written_at))
        found.append(
            (documents.fingerprint_of([file], tmp_path), documents.pieces_of(file, tmp_path)[0].fingerprint)
        )
    assert set(found[0]).isdisjoint(found[1])


def test_a_sample_is_spread_over_a_large_corpus() -> None:
    def read(unit: int) -> Iterator[tuple[str, int]]:
        return ((f"{unit}.{number}", 1) for number in range(1000))

    assert len(list(documents.sample(range(3), read=read))) == 3000
    found = list(documents.sample(range(80), read=read, characters=80))
    assert {text.partition(".")[0] for text in found} == {str(unit) for unit in range(0, 80, 10)}
    assert len(found) < 80


def test_blocks_end_at_empty_lines() -> None:
    lines = [line for i in range(40) for line in (f"a line with the number {i}\n", "\n")]
    blocks = list(documents.blocks(lines, characters=100))
    assert "".join(blocks) == "".join(lines)
    assert len(blocks) > 5
    assert all(block.endswith("\n\n") for block in blocks)
    without = documents.blocks(["x" * 99 + "\n"] * 100, characters=1000)
    assert [len(block) for block in without] == [2000] * 5


def test_each_word_of_texts_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow test compares with the tokenizers package, which is not here."""
    asked: list[str] = []

    def encode(new: Sequence[str]) -> list[bytes]:
        asked.extend(new)
        return [word.encode() for word in new]

    known = words.Words(encode)
    for texts in (["one two one two", "two one two three"], ["one three"]):
        assert known.encode(texts) == [text.encode() for text in texts]
    assert sorted(asked) == [" one", " three", " two", "one", "two"]
    for text in ("", " ", "a", " a  b\n\n\tc ", "\x1ca\x85b\u3000", "no-space", "\n"):
        found = words.WORD.findall(text)
        assert "".join(found) == text
        assert all(word[0].isspace() for word in found[1:])
        assert known.encode([text]) == [text.encode()]
    monkeypatch.setattr(words, "MOST_CHARACTERS", 10)
    asked.clear()
    known = words.Words(encode)
    for _ in range(2):
        assert known.encode(["a-long-word"]) == [b"a-long-word"]
        assert known.encode(["b"]) == [b"b"]
    assert asked == ["a-long-word", "b"] * 2, "known words do not fill the memory"
