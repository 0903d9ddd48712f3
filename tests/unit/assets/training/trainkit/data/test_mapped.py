"""The index of ids that fairseq and Megatron map; slow tests compare it with that of their own writers."""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2-megatron") as load:
        yield load


@pytest.mark.parametrize(("documents", "end"), [(False, b""), (True, np.arange(4, dtype="<i8").tobytes())])
def test_the_index_has_sizes_and_the_bytes_at_which_sequences_begin(
    load: Import, tmp_path: Path, documents: bool, end: bytes
) -> None:
    file = tmp_path / "x.idx"
    load("trainkit.data.mapped").write_index(file, [3, 1, 2], dtype=np.uint16, documents=documents)
    counts = struct.pack("<QQ", 3, 4) if documents else struct.pack("<Q", 3)
    head = b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, 8) + counts
    sizes, starts = np.array([3, 1, 2], dtype="<i4"), np.array([0, 6, 8], dtype="<i8")
    assert file.read_bytes() == head + sizes.tobytes() + starts.tobytes() + end


def test_more_ids_than_four_bytes_count_have_their_place(load: Import, tmp_path: Path) -> None:
    file = tmp_path / "x.idx"
    load("trainkit.data.mapped").write_index(file, [2**31 - 1] * 3, dtype=np.int32, documents=False)
    assert np.frombuffer(file.read_bytes()[-8:], dtype="<i8") == [2 * (2**31 - 1) * 4]
