"""fairseq's numbers of a dictionary; a slow test compares the files made of them with fairseq's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "roberta") as load:
        yield load


def test_ids_have_the_places_of_their_symbols_behind_fairseqs_own(load: Import, tmp_path: Path) -> None:
    file = tmp_path / "dict.txt"
    file.write_text("2 17\nmadeupword0000 0\n0 5 \n")
    found = load("fairseq_format").read_numbering(file)
    # The id 1 has no symbol, and the last number is the end of a line.
    assert (found.indices.tolist(), found.dtype) == ([6, 3, 4, 2], "uint16")
    assert found.dictionary == "2 17\nmadeupword0000 0\n0 5\n"


def test_numbers_of_large_dictionaries_have_four_bytes(load: Import, tmp_path: Path) -> None:
    file = tmp_path / "dict.txt"
    for count, dtype in ((65_495, "uint16"), (65_496, "uint32")):
        file.write_text("".join(f"{number} 1\n" for number in range(count)))
        assert load("fairseq_format").read_numbering(file).dtype == dtype


@pytest.mark.parametrize("line", ["1", "", "1 x", "0 1", "<unk> 1", "1 1 #fairseq:overwrite"])
def test_a_line_that_fairseq_cannot_read_is_named(load: Import, tmp_path: Path, line: str) -> None:
    file = tmp_path / "dict.txt"
    file.write_text(f"0 1\n{line}\n")
    with pytest.raises(load("binary_data").DataError, match=r"dict.txt, line 2: fairseq cannot read"):
        load("fairseq_format").read_numbering(file)
