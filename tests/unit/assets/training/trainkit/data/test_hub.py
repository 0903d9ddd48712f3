"""Downloads from a hub on this machine: whole, right, resumed; or reported in one sentence."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import workload_on_the_path

REPOSITORY = "someone/text"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load("trainkit.data.hub")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one large and one small file of a text."""
    data = tmp_path / "hub" / "datasets" / REPOSITORY / "plain_text"
    data.mkdir(parents=True)
    (data / "train-00000-of-00080.parquet").write_bytes(b"0123456789" * 1000)
    (data / "README.md").write_bytes(b"about")
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def files(hub: ModuleType) -> list[object]:
    found: list[object] = hub.list_files("datasets", REPOSITORY, "main", folder="plain_text")
    return found


def test_files_are_fetched_with_the_sums_that_the_hub_lists(
    hub: ModuleType, served: Hub, tmp_path: Path
) -> None:
    for number, file in enumerate(files(hub)):
        hub.fetch(file, tmp_path / "to" / str(number))
    assert (tmp_path / "to" / "0").read_bytes() == b"about"
    assert (tmp_path / "to" / "1").read_bytes() == b"0123456789" * 1000
    fetched = len(served.requests)
    for number, file in enumerate(files(hub)):
        hub.fetch(file, tmp_path / "to" / str(number))
    assert len(served.requests) == fetched, "what is there and right is not fetched again"


def test_a_download_that_was_cut_off_goes_on_where_it_was(
    hub: ModuleType, served: Hub, tmp_path: Path
) -> None:
    large = files(hub)[1]
    (tmp_path / ".file.part").write_bytes(b"0123456789" * 300)
    hub.fetch(large, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"0123456789" * 1000
    assert [asked for _, asked in served.requests] == ["bytes=3000-"]


def test_a_connection_that_breaks_off_is_taken_up_again(hub: ModuleType, served: Hub, tmp_path: Path) -> None:
    large = files(hub)[1]
    served.break_off_after = 4000
    hub.fetch(large, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"0123456789" * 1000
    assert [asked for _, asked in served.requests] == ["", "bytes=4000-"]


def test_a_file_that_is_not_what_was_listed_is_refused_and_not_kept(
    hub: ModuleType, served: Hub, tmp_path: Path
) -> None:
    for file in files(hub):
        changed = served.folder / "datasets" / REPOSITORY / file.path  # type: ignore[attr-defined]
        changed.write_bytes(b"X" * changed.stat().st_size)
        with pytest.raises(hub.FetchError, match=r"is not the expected file: its (sha256|git object id) is"):
            hub.fetch(file, tmp_path / "to" / "file")
    assert list((tmp_path / "to").iterdir()) == []


def test_a_hub_that_does_not_answer_is_reported(hub: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(hub.FetchError, match=r"could not fetch http://127.0.0.1:9/api/.* \(.*onnect"):
        files(hub)


def test_the_token_stays_out_of_the_command_line(
    hub: ModuleType, served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user of a node can read command lines."""
    stub = tmp_path / "bin" / "curl"
    stub.parent.mkdir()
    stub.write_text(
        f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\ncat >{tmp_path}/stdin\nexit 22\n', encoding="utf-8"
    )
    stub.chmod(0o755)
    listed = files(hub)
    monkeypatch.setenv("PATH", f"{stub.parent}:/usr/bin:/bin")
    monkeypatch.setenv("HF_TOKEN", "secret")
    with pytest.raises(hub.FetchError):
        hub.fetch(listed[0], tmp_path / "file")
    assert "secret" not in (tmp_path / "arguments").read_text()
    assert (tmp_path / "stdin").read_text() == 'header = "Authorization: Bearer secret"\n'
