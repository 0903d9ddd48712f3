"""Verification: content is compared once for each state of a file, and what is wrong is named."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path

CONTENT = {"train-00000.bin": b"one", "train-00001.bin": b"three", "val-00000.bin": b"seven"}


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        monkeypatch.delenv("VERIFY_DATA", raising=False)
        yield load("trainkit.data.verify")


@pytest.fixture
def files(verify: ModuleType, tmp_path: Path) -> list[Any]:
    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
    return [
        verify.DataFile(name, len(content), hashlib.sha256(content).hexdigest())
        for name, content in CONTENT.items()
    ]


@pytest.fixture
def read(verify: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the files that are read for their sums, as they are read."""
    names: list[str] = []
    real = verify.sha256_of

    def sha256_of(file: Path) -> str:
        names.append(file.name)
        return str(real(file))

    monkeypatch.setattr(verify, "sha256_of", sha256_of)
    return names


def test_content_is_read_once(verify: ModuleType, files: list[Any], read: list[str], tmp_path: Path) -> None:
    said: list[str] = []
    verify.verify(tmp_path, files, say=said.append)
    assert sorted(read) == sorted(CONTENT)
    assert len(said) == 1
    assert "in 3 files verified" in said[0]
    verify.verify(tmp_path, files, say=said.append)
    assert (len(read), len(said)) == (3, 1)


def test_a_file_that_changes_is_read_again(
    verify: ModuleType, files: list[Any], read: list[str], tmp_path: Path
) -> None:
    verify.verify(tmp_path, files)
    changed = tmp_path / "train-00001.bin"
    changed.write_bytes(b"THREE")
    os.utime(changed, ns=(1, 1))
    read.clear()
    with pytest.raises(Exception, match=r"00001.bin is corrupt: its sha256 is .*; delete it and submit"):
        verify.verify(tmp_path, files)
    assert read == ["train-00001.bin"]


def test_another_sum_in_the_manifest_is_compared_again(
    verify: ModuleType, files: list[Any], tmp_path: Path
) -> None:
    """Other data of the same size and time, such as a copy that keeps times, has its own manifest."""
    verify.verify(tmp_path, files)
    other = [verify.DataFile(file.name, file.size_bytes, "0" * 64) for file in files]
    with pytest.raises(Exception, match="is corrupt: its sha256 is"):
        verify.verify(tmp_path, other)


@pytest.mark.parametrize("stamp", ["", "{", "[]", '{"train-00000.bin": 7}', "\0" * 40])
def test_a_damaged_record_means_that_the_data_is_read_again(
    verify: ModuleType, files: list[Any], read: list[str], tmp_path: Path, stamp: str
) -> None:
    (tmp_path / "verified.json").write_text(stamp, encoding="utf-8")
    verify.verify(tmp_path, files)
    assert sorted(read) == sorted(CONTENT)
    assert sorted(json.loads((tmp_path / "verified.json").read_text())) == sorted(CONTENT)


def test_interrupted_work_goes_on(
    verify: ModuleType, files: list[Any], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "NOTE_EVERY_S", -1.0)
    monkeypatch.setattr(verify, "MAX_THREADS", 1)

    (tmp_path / "val-00000.bin").write_bytes(b"SEVEN")
    with pytest.raises(Exception, match=r"val-00000.bin is corrupt"):
        verify.verify(tmp_path, files)
    (tmp_path / "val-00000.bin").write_bytes(b"seven")
    read.clear()
    verify.verify(tmp_path, files)
    assert read == ["val-00000.bin"]


def test_sizes_are_compared_at_every_start(
    verify: ModuleType, files: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIFY_DATA", "no")
    (tmp_path / "train-00000.bin").write_bytes(b"ONE")
    verify.verify(tmp_path, files)
    (tmp_path / "train-00000.bin").write_bytes(b"o")
    with pytest.raises(Exception, match=r"train-00000.bin is corrupt: it has 1 bytes, manifest.json says 3"):
        verify.verify(tmp_path, files)
    (tmp_path / "train-00000.bin").unlink()
    with pytest.raises(Exception, match=r"train-00000.bin is missing"):
        verify.verify(tmp_path, files)


def test_a_word_that_is_not_allowed_is_refused(
    verify: ModuleType, files: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIFY_DATA", "perhaps")
    with pytest.raises(Exception, match='VERIFY_DATA is "perhaps"; allowed: yes, no'):
        verify.verify(tmp_path, files)


def test_data_in_a_folder_of_another_user_is_verified_at_each_start(
    verify: ModuleType, files: list[Any], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(verify, "write_whole", refuse)
    said: list[str] = []
    verify.verify(tmp_path, files, say=said.append)
    assert "verified.json cannot be written, so the next start verifies the data again" in said[-1]
    verify.verify(tmp_path, files, say=said.append)
    assert len(read) == 2 * len(CONTENT)
