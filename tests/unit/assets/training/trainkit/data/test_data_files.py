"""Files that data is made of: files of a BPE, the index of ids, text of the machine."""

import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from trainkit.data import machine_text
from trainkit.data.bpe import Bpe
from trainkit.data.mapped import write_index


def test_the_checksum_of_two_files_has_their_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    of_one, of_two = (hashlib.sha256(text).hexdigest() for text in (b"1", b"2"))
    assert Bpe((one,)).sha256 == of_one
    assert Bpe((one, two)).sha256 == hashlib.sha256((of_one + of_two).encode()).hexdigest()


@pytest.mark.parametrize(("documents", "end"), [(False, b""), (True, np.arange(4, dtype="<i8").tobytes())])
def test_an_index_has_where_sequences_begin(tmp_path: Path, documents: bool, end: bytes) -> None:
    """Nightly tests compare it with those of fairseq and Megatron."""
    file = tmp_path / "x.idx"
    write_index(file, [3, 1, 2], dtype=np.uint16, documents=documents)
    counts = struct.pack("<QQ", 3, 4) if documents else struct.pack("<Q", 3)
    head = b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, 8) + counts
    sizes, starts = np.array([3, 1, 2], dtype="<i4"), np.array([0, 6, 8], dtype="<i8")
    assert file.read_bytes() == head + sizes.tobytes() + starts.tobytes() + end
    write_index(file, [2**31 - 1] * 3, dtype=np.int32, documents=False)
    assert np.frombuffer(file.read_bytes()[-8:], dtype="<i8") == [2 * (2**31 - 1) * 4]


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


def test_text_of_the_machine_is_gathered_once(stdlib: Path, tmp_path: Path) -> None:
    licences = tmp_path / "licences"
    (only,) = machine_text.gather(tmp_path / "none", licences=licences, stdlib=stdlib)
    assert only.read_text(encoding="utf-8").split() == "Module a. Class A. Method f. Module b.".split()
    licences.mkdir()
    (licences / "MIT-2").write_text("Permission is granted.\n", encoding="utf-8")
    (licences / "MIT").symlink_to("MIT-2")

    def gather() -> list[Path]:
        return machine_text.gather(tmp_path / "to", licences=licences, stdlib=stdlib)

    first, second = gather()
    assert first.read_text(encoding="utf-8") == "Permission is granted.\n"
    before = second.stat().st_mtime_ns
    assert gather()[1].stat().st_mtime_ns == before
    (licences / "BSD").write_text("Redistribution and use are permitted.\n", encoding="utf-8")
    assert "Redistribution" in gather()[0].read_text(encoding="utf-8")
