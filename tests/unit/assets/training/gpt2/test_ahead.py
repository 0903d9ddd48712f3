"""Batches of the next step: read while this one computes, and always those of the position."""

import threading
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load("ahead")


@pytest.mark.parametrize("is_on", [True, False])
def test_each_step_has_the_batches_of_its_position(ahead: ModuleType, is_on: bool) -> None:
    with ahead.Ahead(lambda first: [first, first + 1], sequences=10, is_on=is_on) as reader:
        assert [reader.batches(first) for first in (30, 40, 50)] == [[30, 31], [40, 41], [50, 51]]
        assert reader.batches(7) == [7, 8], "a position that does not follow"


def test_the_next_step_is_read_before_it_is_asked_for(ahead: ModuleType) -> None:
    read, second = list[int](), threading.Event()

    def note(first: int) -> int:
        read.append(first)
        if first == 10:
            second.set()
        return first

    with ahead.Ahead(note, sequences=10, is_on=True) as reader:
        assert reader.batches(0) == 0
        assert second.wait(10)
        assert read == [0, 10]


def test_an_error_of_the_thread_is_raised_in_its_step(ahead: ModuleType) -> None:
    def read(first: int) -> int:
        if first:
            raise OSError("the file system is gone")
        return first

    with ahead.Ahead(read, sequences=10, is_on=True) as reader:
        assert reader.batches(0) == 0
        with pytest.raises(OSError, match="is gone"):
            reader.batches(10)
