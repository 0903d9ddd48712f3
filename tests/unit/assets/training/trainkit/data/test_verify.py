"""Verification: content is compared once for each state of a file, and what is wrong is named."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from trainkit.data import shards
from trainkit.data import verify as verifying
from trainkit.data.verify import DataFile, verify

CONTENT = {"train-00000.bin": b"one", "train-00001.bin": b"three", "val-00000.bin": b"seven"}
FILES = [DataFile(name, len(text), hashlib.sha256(text).hexdigest()) for name, text in CONTENT.items()]


@pytest.fixture(autouse=True)
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write the files, and return the names of those that are read for their sums, as they are read."""
    names: list[str] = []

    def sha256_of(file: Path) -> str:
        names.append(file.name)
        return shards.sha256_of(file)

    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.delenv("VERIFY_DATA", raising=False)
    monkeypatch.setattr(verifying, "sha256_of", sha256_of)
    return names


def refuses(folder: Path, sentence: str, files: list[DataFile] = FILES) -> None:
    with pytest.raises(Exception, match=sentence):
        verify(folder, files)


def test_content_is_read_once_until_it_changes(
    read: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        verify(tmp_path, FILES)
        assert sorted(read) == sorted(CONTENT)
    assert capsys.readouterr().out.count("in 3 files verified") == 1
    verify(tmp_path, FILES)
    changed = tmp_path / "train-00001.bin"
    changed.write_bytes(b"THREE")
    os.utime(changed, ns=(1, 1))
    read.clear()
    refuses(tmp_path, r"00001.bin is corrupt: its sha256 is .*; delete it and submit")
    assert read == ["train-00001.bin"]


def test_another_manifest_is_compared_again(tmp_path: Path) -> None:
    """Other data of the same size and time, such as a copy that keeps times, has its own manifest."""
    verify(tmp_path, FILES)
    other = [DataFile(file.name, file.size_bytes, "0" * 64) for file in FILES]
    refuses(tmp_path, "is corrupt: its sha256 is", other)


@pytest.mark.parametrize("stamp", ["", "{", "[]", '{"train-00000.bin": 7}', "\0" * 40])
def test_data_with_a_damaged_record_is_read_again(read: list[str], tmp_path: Path, stamp: str) -> None:
    (tmp_path / "verified.json").write_text(stamp, encoding="utf-8")
    verify(tmp_path, FILES)
    assert sorted(read) == sorted(CONTENT)
    assert sorted(json.loads((tmp_path / "verified.json").read_text())) == sorted(CONTENT)


def test_interrupted_work_continues(read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "NOTE_EVERY_S", -1.0)
    monkeypatch.setattr(verifying, "MAX_THREADS", 1)
    (tmp_path / "val-00000.bin").write_bytes(b"SEVEN")
    refuses(tmp_path, r"val-00000.bin is corrupt")
    (tmp_path / "val-00000.bin").write_bytes(b"seven")
    read.clear()
    verify(tmp_path, FILES)
    assert read == ["val-00000.bin"]


def test_sizes_are_compared_at_every_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIFY_DATA", "perhaps")
    refuses(tmp_path, 'VERIFY_DATA is "perhaps"; allowed: yes, no')
    monkeypatch.setenv("VERIFY_DATA", "no")
    (tmp_path / "train-00000.bin").write_bytes(b"ONE")
    verify(tmp_path, FILES)
    (tmp_path / "train-00000.bin").write_bytes(b"o")
    refuses(tmp_path, r"train-00000.bin is corrupt: it has 1 bytes, manifest.json says 3")
    (tmp_path / "train-00000.bin").unlink()
    refuses(tmp_path, r"train-00000.bin is missing")


def test_data_of_another_user_is_read_each_time(
    read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(verifying, "write_whole", refuse)
    for _ in range(2):
        verify(tmp_path, FILES)
        assert "verified.json cannot be written, so the next start verifies" in capsys.readouterr().out
    assert len(read) == 2 * len(CONTENT)
