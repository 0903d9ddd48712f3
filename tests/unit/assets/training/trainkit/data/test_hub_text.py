"""Published texts, from a hub on this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.training.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import Import, workload_on_the_path

REPOSITORY = "someone/text"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def text(load: Import) -> Any:
    return load("trainkit.data.hub_text").HubText(
        title="A text", name="text", repository=REPOSITORY, revision="0" * 40, folder="en"
    )


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    folder = tmp_path / "hub" / "datasets" / REPOSITORY / "en"
    folder.mkdir(parents=True)
    for number in (1, 0):
        (folder / f"train-{number}.parquet").write_bytes(b"0123456789" * 1000)
    (folder / "README.md").write_bytes(b"about")
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def test_a_text_is_its_parquet_files_in_their_order_and_is_not_fetched_before_it_is_read(
    text: Any, served: Hub, tmp_path: Path
) -> None:
    found = text.units(tmp_path)
    assert [(unit.name, unit.size_bytes) for unit in found] == [
        ("en/train-0.parquet", 10_000),
        ("en/train-1.parquet", 10_000),
    ]
    assert found[0].file == tmp_path / "downloads" / "text" / "train-0.parquet"
    assert text.fingerprint == f"{REPOSITORY}@{'0' * 40}"
    assert served.requests == []


def test_a_unit_is_downloaded_when_it_is_read_and_resumed_and_kept(
    load: Import, text: Any, served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("trainkit.data.hub_text")
    monkeypatch.setattr(module, "documents_of", lambda piece: iter([(piece.file.read_text(), 1)]))
    unit = text.units(tmp_path)[1]
    unit.file.parent.mkdir(parents=True)
    (unit.file.parent / f".{unit.file.name}.part").write_bytes(b"0123456789" * 300)
    assert text.downloaded(tmp_path) == "; 0.0 MB downloaded"
    for _ in range(2):
        assert next(module.fetched_documents(unit)) == ("0123456789" * 1000, 1)
    path = f"/datasets/{REPOSITORY}/resolve/{'0' * 40}/en/train-1.parquet"
    assert served.requests == [(path, "bytes=3000-")]


def test_a_text_that_cannot_be_had_is_reported_with_the_ways_to_go_on(
    load: Import, text: Any, served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = load("trainkit.data.shards").ShardError
    for file in (served.folder / "datasets" / REPOSITORY / "en").glob("*.parquet"):
        file.unlink()
    with pytest.raises(error, match=r"A text cannot be had: someone/text has no parquet file in en\. Have"):
        text.units(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(error, match=r"(?s)A text cannot be had: could not fetch .*CORPUS=machine"):
        text.units(tmp_path)


def test_edition_of_wikipedia_is_one_revision(load: Import) -> None:
    module = load("trainkit.data.hub_text")
    text = module.wikipedia_text(module.wikipedia_corpus("20231101.simple"))
    assert (text.name, text.folder) == ("wikipedia-20231101.simple", "20231101.simple")
    assert text.fingerprint == f"{module.REPOSITORY}@{module.REVISION}"
    assert module.wikipedia_text("machine") is None


@pytest.mark.parametrize("edition", ["en", "20231101", "../20231101.en"])
def test_wrong_edition_is_refused(load: Import, edition: str) -> None:
    module = load("trainkit.data.hub_text")
    with pytest.raises(module.ShardError, match=r"WIKIPEDIA_EDITION is .*: give a date and a language"):
        module.wikipedia_corpus(edition)


def test_space_includes_the_file_until_it_exists(
    load: Import, text: Any, served: Hub, tmp_path: Path
) -> None:
    space_of = load("trainkit.data.hub_text").space_of
    unit = text.units(tmp_path)[0]
    assert space_of(unit, shards=0.7) == pytest.approx(10_000 + 20_000 * 0.7)
    unit.file.parent.mkdir(parents=True)
    unit.file.touch()
    assert space_of(unit) == 20_000
