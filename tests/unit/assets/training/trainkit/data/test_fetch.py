"""Downloads of trainkit: resumed, checked, and reported in one sentence."""

import hashlib
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path


@pytest.fixture
def fetch(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "roberta") as load:
        yield load("trainkit.data.fetch")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    file = tmp_path / "remote"
    file.write_bytes(os.urandom(100_000))
    return file


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_is_downloaded_once_and_an_interrupted_download_is_resumed(
    fetch: ModuleType, remote: Path, tmp_path: Path
) -> None:
    file = tmp_path / "raw" / "file"
    file.parent.mkdir()
    (file.parent / ".file.part").write_bytes(remote.read_bytes()[:60_000])
    expected = sha256(remote)
    fetch.ensure_file(file, url=remote.as_uri(), key="raw/file", bucket=None, sha256=expected)
    assert [path.name for path in file.parent.iterdir()] == ["file"]
    remote.unlink()
    fetch.ensure_file(file, url=remote.as_uri(), key="raw/file", bucket=None, sha256=expected)
    assert sha256(file) == expected


def test_a_complete_download_that_has_no_name_yet_is_not_repeated(
    fetch: ModuleType, remote: Path, tmp_path: Path
) -> None:
    remote.rename(tmp_path / ".file.part")
    fetch.download(remote.as_uri(), tmp_path / "file", expected=fetch.Expected(size_bytes=100_000))
    assert (tmp_path / "file").stat().st_size == 100_000


def test_a_file_that_cannot_be_fetched_is_named_with_its_place(fetch: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "raw" / "file"
    with pytest.raises(
        fetch.FetchError, match=r"could not fetch .*: submit again, .*copy the file to"
    ) as told:
        fetch.ensure_file(file, url=(tmp_path / "none").as_uri(), key="raw/file", bucket=None)
    assert str(file) in str(told.value)
    # A process of a pool raises it in another one.
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)


@pytest.mark.parametrize("wrong", ["size_bytes", "sha256", "git_sha1"])
def test_a_file_that_is_not_the_expected_one_is_refused_and_not_kept(
    fetch: ModuleType, remote: Path, tmp_path: Path, wrong: str
) -> None:
    expected = fetch.Expected(**{wrong: 1 if wrong == "size_bytes" else "0" * 40})
    with pytest.raises(fetch.FetchError, match=r"is not the expected file: its .* is .*, not "):
        fetch.download(remote.as_uri(), tmp_path / "to" / "file", expected=expected)
    assert list((tmp_path / "to").iterdir()) == []


def test_a_file_of_ones_own_with_another_checksum_is_refused_and_kept(
    fetch: ModuleType, remote: Path
) -> None:
    with pytest.raises(
        fetch.FetchError, match=r"is not the expected file: its sha256 is .*: remove it, and submit again"
    ):
        fetch.ensure_file(remote, url="file:///none", key="raw/file", bucket=None, sha256="0" * 64)
    assert remote.is_file()
