"""Lines of text as fairseq's numbers: order, sizes, interruptions; fairseq is not here."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.assets.training.workload_modules import Import

# An id is a byte; its index is four more, as behind fairseq's own symbols.
END = 2
LINES = [f"line {number}\n" if number % 4 else "\n" for number in range(10)]


class Letters:
    """The indices of bytes; the power goes out after so many batches."""

    def __init__(self, *, after: int | None = None) -> None:
        self.after, self.batches, self.lines = after, 0, 0

    def __call__(self, lines: list[str]) -> list[bytes]:
        """The bytes of each line."""
        if self.batches == self.after:
            raise KeyboardInterrupt
        self.batches += 1
        self.lines += len(lines)
        return [np.array([byte + 4 for byte in line.encode()], dtype=np.uint16).tobytes() for line in lines]


@pytest.fixture
def given(load: Import) -> Iterator[Callable[..., dict[str, Any]]]:
    """Threads that encode as the processes do, with a given function."""
    process, pools = load("encoding").Process, list[ThreadPoolExecutor]()

    def give(encode: Callable[[list[str]], list[bytes]], *, workers: int = 1) -> dict[str, Any]:
        for pool in pools:
            pool.shutdown(cancel_futures=True)
        process.end, process.encode = np.uint16(END).tobytes(), staticmethod(encode)
        pools.append(ThreadPoolExecutor(workers))
        return {"pool": pools[-1], "workers": workers}

    yield give
    pools[-1].shutdown(cancel_futures=True)


Given = Callable[..., dict[str, Any]]


def a_split(load: Import, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    return load("split_files").Split(binary=folder / "train.bin", work=folder, token_bytes=2)


def numbers(line: str) -> list[int]:
    return [byte + 4 for byte in line.strip().encode()] + [END]


def test_each_line_becomes_its_indices(
    load: Import, given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encode_split, split = load("split_files").encode_split, a_split(load, tmp_path)
    lines = ["ab\n", "\n", " \t b \n", "\u00e9"]
    assert encode_split(iter(lines), split, total_bytes=12, **given(Letters())) == 9
    found = np.fromfile(split.binary, dtype=np.uint16).tolist()
    assert found == [101, 102, END, END, 102, END, 0xC3 + 4, 0xA9 + 4, END]
    assert list(split.read_sizes()) == [3, 1, 2, 3]
    assert "data: train, 0.0 of 0.0 MB encoded" in capsys.readouterr().out
    # It is done: the text is not read again.
    assert encode_split(iter([]), split, total_bytes=12, **given(Letters())) == 9


@pytest.mark.parametrize("after", range(5))
def test_encoding_continues_where_it_was_interrupted(
    load: Import, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    split_files = load("split_files")
    monkeypatch.setattr(load("encoding"), "BATCH_LINES", 2)
    monkeypatch.setattr(split_files, "RECORD_EVERY_BATCHES", 2)
    whole, resumed = a_split(load, tmp_path / "whole"), a_split(load, tmp_path / "resumed")
    tokens = split_files.encode_split(iter(LINES), whole, total_bytes=70, **given(Letters()))
    with pytest.raises(KeyboardInterrupt):
        split_files.encode_split(iter(LINES), resumed, total_bytes=70, **given(Letters(after=after)))
    assert not resumed.binary.exists()
    assert resumed.read_progress().lines == after // 2 * 4
    if after > 2:
        # One file got further than the other before the power went.
        with resumed.partial.open("ab") as file:
            file.write(b"torn")
        resumed.sizes.write_bytes(resumed.sizes.read_bytes()[:-3])
    again = Letters()
    assert split_files.encode_split(iter(LINES), resumed, total_bytes=70, **given(again)) == tokens
    assert again.lines == len(LINES) - after // 2 * 4, "what was recorded is not encoded again"
    assert resumed.binary.read_bytes() == whole.binary.read_bytes()
    assert resumed.read_sizes() == whole.read_sizes()


def test_the_text_is_read_a_little_ahead(load: Import, given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    encoding = load("encoding")
    monkeypatch.setattr(encoding, "BATCH_LINES", 5)
    endless = itertools.count()
    taken = encoding.encoded((f"{number}\n" for number in endless), **given(Letters(), workers=3))
    for number in range(1, 10):
        assert next(taken).lines == 5
        assert next(endless) < (number + encoding.AHEAD * 3) * 6
    taken.close()


def test_a_batch_of_long_lines_has_fewer(load: Import) -> None:
    encoding = load("encoding")
    long = "x" * (encoding.BATCH_CHARACTERS // 3)
    lines = [*[long] * 8, *["y"] * encoding.BATCH_LINES, "z"]
    found = list(encoding.batches(iter(lines)))
    assert [line for batch in found for line in batch] == lines
    assert [len(batch) for batch in found] == [4, 4, encoding.BATCH_LINES, 1]


def test_another_dictionary_encodes_all_anew(
    load: Import, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load("encoding"), "BATCH_LINES", 2)
    monkeypatch.setattr(load("split_files"), "RECORD_EVERY_BATCHES", 2)

    def binarise(folder: Path, encode: Letters, *, first: int) -> bytes:
        pool = given(encode)["pool"]
        monkeypatch.setattr(load("binarise"), "ProcessPoolExecutor", lambda *_, **__: pool)
        bpe = SimpleNamespace(bpe=None, dictionary=folder / "dict.txt")
        place = {"to": folder / "data", "work": folder / "work", "workers": 1}
        folder.mkdir(exist_ok=True)
        symbols = [f"other{number}" for number in range(4, first)] + list(map(str, range(256)))
        bpe.dictionary.write_text("".join(f"{symbol} 1\n" for symbol in symbols))
        sizes = {"train": 70, "valid": 70}
        tokens = load("binarise").binarise(lambda _: iter(LINES), sizes, bpe=bpe, **place)
        assert tokens == {split: sum(len(numbers(line)) for line in LINES) for split in sizes}
        index = (folder / "data" / "valid.idx").read_bytes()
        assert np.frombuffer(index, "<i4", len(LINES), offset=26).tolist() == [len(numbers(n)) for n in LINES]
        return b"".join((folder / "data" / f"{split}.bin").read_bytes() for split in sizes)

    whole, interrupted = tmp_path / "whole", tmp_path / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        binarise(interrupted, Letters(after=9), first=4)
    kept = Letters(after=5)
    with pytest.raises(KeyboardInterrupt):
        binarise(interrupted, kept, first=5)
    same = Letters()
    assert binarise(interrupted, same, first=5) == binarise(whole, Letters(), first=5)
    assert (kept.lines, same.lines) == (10, 10), "one split is done, and not encoded again"
