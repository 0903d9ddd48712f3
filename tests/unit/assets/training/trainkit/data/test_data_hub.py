"""Downloads of texts and weights from a hub on this machine: whole, right, resumed; or one sentence."""

import hashlib
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from trainkit.data import dataset_bucket, fetch, hf_weights, hub, hub_text
from trainkit.data.rows import groups_of
from trainkit.data.shards import ShardError

from tests.unit.assets.training.trainkit.data.hub_server import COMMIT, Hub, hub_server
from tests.unit.assets.training.waiting import wait_until

REPOSITORY, DIGITS = "someone/text", b"0123456789" * 1000
FILES = ("config.json", "model-1-of-2.safetensors", "model-2-of-2.safetensors", "tokenizer.json")
TEXT = hub_text.HubText(title="A text", name="text", repository=REPOSITORY, revision="0" * 40, folder="en")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with two files of a text, and weights beside pictures and other formats that nobody wants."""
    texts, model = (tmp_path / "hub" / each for each in (f"datasets/{REPOSITORY}/en", "models/org/model"))
    for folder in (texts, model / "original"):
        folder.mkdir(parents=True)
    for number in (1, 0):
        (texts / f"train-{number}.parquet").write_bytes(DIGITS)
    (texts / "README.md").write_bytes(b"about")
    for name in (*FILES, "loss.png", "pytorch_model.bin", "original/params.json"):
        (model / name).write_bytes(name.encode() * 100)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    file = tmp_path / "remote"
    file.write_bytes(os.urandom(100_000))
    return file


def test_a_file_is_downloaded_once(remote: Path, tmp_path: Path) -> None:
    file, expected = tmp_path / "raw" / "file", hashlib.sha256(remote.read_bytes()).hexdigest()
    fetch.ensure_file(file, url=remote.as_uri(), key="raw/file", bucket=None, sha256=expected)
    assert [path.name for path in file.parent.iterdir()] == ["file"]
    remote.unlink()
    fetch.ensure_file(file, url=remote.as_uri(), key="raw/file", bucket=None, sha256=expected)
    # A download that is complete, and has no name yet.
    file.rename(tmp_path / ".file.part")
    fetch.download(remote.as_uri(), tmp_path / "file", expected=fetch.Expected(size_bytes=100_000))
    assert hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest() == expected


def test_a_missing_or_wrong_file_is_named(tmp_path: Path, remote: Path) -> None:
    file = tmp_path / "raw" / "file"
    with pytest.raises(
        fetch.FetchError, match=r"could not fetch .*: submit again, .*copy the file to"
    ) as told:
        fetch.ensure_file(file, url=(tmp_path / "none").as_uri(), key="raw/file", bucket=None)
    assert str(file) in str(told.value)
    # A process of a pool raises it in another one.
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)
    for wrong in (
        fetch.Expected(size_bytes=1),
        fetch.Expected(sha256="0" * 64),
        fetch.Expected(git_sha1="0" * 40),
    ):
        with pytest.raises(fetch.FetchError, match=r"is not the expected file: its .* is .*, not "):
            fetch.download(remote.as_uri(), tmp_path / "to" / "file", expected=wrong)
        assert list((tmp_path / "to").iterdir()) == []
    with pytest.raises(fetch.FetchError, match=r"its sha256 is .*: remove it, and submit again"):
        fetch.ensure_file(remote, url="file:///none", key="raw/file", bucket=None, sha256="0" * 64)
    assert remote.is_file()


def test_files_have_the_sums_that_the_hub_lists(served: Hub, tmp_path: Path) -> None:
    served.break_off_after = 2
    listed = hub.list_files("datasets", REPOSITORY, "main", folder="en")
    for _ in range(2):
        for number, file in enumerate(listed):
            hub.fetch(file, tmp_path / "to" / str(number))
    assert [(tmp_path / "to" / each).read_bytes() for each in "012"] == [b"about", DIGITS, DIGITS]
    assert [asked for _, asked in served.requests] == ["", "bytes=2-", "", ""], "resumed, and kept"


def test_one_process_downloads_what_several_need(served: Hub, tmp_path: Path) -> None:
    about, file, *_ = hub.list_files("datasets", REPOSITORY, "main", folder="en")
    before = len(psutil.Process().open_files())
    with ThreadPoolExecutor(4) as threads:
        served.held = "train-0"
        fetched = [threads.submit(hub.fetch, file, tmp_path / "file") for _ in range(4)]
        wait_until(lambda: len(psutil.Process().open_files()) == before + 4, what="not all of them wait")
        served.held = ""
        assert all(each.result().read_bytes() == DIGITS for each in fetched)
    assert [path.rpartition("/")[2] for path, _ in served.requests] == ["train-0.parquet"]
    # The reason of a failure, which one process has written for those that wait.
    (tmp_path / ".other.lock").write_text("the hub is gone")
    with pytest.raises(fetch.FetchError, match="the hub is gone: submit again"):
        hub.fetch(about, tmp_path / "other")
    assert [each.name for each in tmp_path.glob(".*")] == [], "nothing else is left"
    hub.fetch(about, tmp_path / "other")


@pytest.mark.usefixtures("served")
def test_a_file_is_compared_once_by_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = hub.list_files("datasets", REPOSITORY, "main", folder="en")[1]
    to, compared, mismatch = tmp_path / "file", list[str](), fetch.Expected.mismatch

    def noted(expected: fetch.Expected, file: Path) -> str:
        compared.append(file.name)
        return mismatch(expected, file)

    monkeypatch.setattr(fetch.Expected, "mismatch", noted)

    def in_process() -> None:
        hub_text.fetch_once.cache_clear()
        hub_text.fetch_once(remote, to)

    for _ in range(3):
        in_process()
    assert compared == [".file.part"], "64 processes would otherwise each read the whole file"
    to.write_bytes(DIGITS[::-1])
    in_process()
    assert compared[1:] == ["file", "file", ".file.part"]
    assert to.read_bytes() == DIGITS


def test_a_big_hub_file_is_many_units(served: Hub, tmp_path: Path) -> None:
    listed = hub.list_files("datasets", REPOSITORY, "main", folder="en")[1:]
    big = [replace(each, size_bytes=2**26) for each in listed]
    units = TEXT.downloads(((each, "") for each in big), tmp_path)
    assert [unit.name.removeprefix("en/train-") for unit in units] == [
        *("0.parquet, part 1", "1.parquet, part 1", "0.parquet, part 2", "1.parquet, part 2")
    ]
    assert [(unit.start, unit.end, unit.source) for unit in units[::2]] == [
        (0, 2**25, "en/train-0.parquet"),
        (2**25, 2**26, "en/train-0.parquet"),
    ]
    assert len({unit.fingerprint for unit in units}) == 2, "both files have the same content"
    assert sum(map(hub_text.space_of, units)) == 2 * (2**26 + 2 * 2**26)


def test_each_group_of_rows_is_read_once() -> None:
    for count, size, cut in ((1, 10, 3), (7, 100, 30), (1000, 99, 10), (3, 3, 1)):
        found = [
            group
            for start in range(0, size, cut)
            for group in groups_of(count, size, start=start, end=min(start + cut, size))
        ]
        assert found == list(range(count)) == groups_of(count, size, start=0, end=None)


def test_a_token_stays_out_of_command_lines(
    served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user of a node can read command lines."""
    stub = tmp_path / "bin" / "curl"
    stub.parent.mkdir()
    stub.write_text(
        f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\ncat >{tmp_path}/stdin\nexit 22\n', encoding="utf-8"
    )
    stub.chmod(0o755)
    listed = hub.list_files("datasets", REPOSITORY, "main", folder="en")
    monkeypatch.setenv("PATH", f"{stub.parent}:/usr/bin:/bin")
    monkeypatch.setenv("HF_TOKEN", "secret")
    with pytest.raises(fetch.FetchError):
        hub.fetch(listed[0], tmp_path / "file")
    assert "secret" not in (tmp_path / "arguments").read_text()
    assert (tmp_path / "stdin").read_text() == 'header = "Authorization: Bearer secret"\n'


def test_a_text_is_fetched_when_it_is_read(
    served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = TEXT.units(tmp_path)
    assert [(unit.name, unit.size_bytes) for unit in found] == [
        ("en/train-0.parquet", 10_000),
        ("en/train-1.parquet", 10_000),
    ]
    unit = found[1]
    assert unit.file == tmp_path / "downloads" / "text" / "train-1.parquet"
    assert TEXT.fingerprint == f"{REPOSITORY}@{'0' * 40}"
    assert hub_text.space_of(unit, shards=0.7) == pytest.approx(10_000 + 20_000 * 0.7)
    assert served.requests == []
    monkeypatch.setattr(hub_text, "documents_of", lambda piece, **_: iter([(piece.file.read_text(), 1)]))
    for _ in range(2):
        assert next(hub_text.fetched_documents(unit)) == (DIGITS.decode(), 1)
    assert (len(served.requests), hub_text.space_of(unit)) == (1, 20_000)
    assert TEXT.downloaded(tmp_path) == "; 0.0 MB downloaded"
    for file in (served.folder / "datasets" / REPOSITORY / "en").glob("*.parquet"):
        file.unlink()
    with pytest.raises(
        ShardError, match=r"A text cannot be had: someone/text has no parquet file in en\. Have"
    ):
        TEXT.units(tmp_path)


def test_an_edition_of_wikipedia_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WIKIPEDIA_EDITION", raising=False)
    assert hub_text.wikipedia().name == "wikipedia-20231101.en"
    monkeypatch.setenv("WIKIPEDIA_EDITION", "20231101.simple")
    text = hub_text.wikipedia()
    assert (text.name, text.folder) == ("wikipedia-20231101.simple", "20231101.simple")
    assert text.fingerprint == f"{hub_text.REPOSITORY}@{hub_text.REVISION}"
    for edition in ("en", "20231101", "../20231101.en"):
        monkeypatch.setenv("WIKIPEDIA_EDITION", edition)
        with pytest.raises(ShardError, match=r"WIKIPEDIA_EDITION is .*: give a date and a language"):
            hub_text.wikipedia()


def test_weights_of_a_folder_are_checked(tmp_path: Path) -> None:
    assert hf_weights.find_weights("", data=tmp_path) is None
    with pytest.raises(
        hf_weights.WeightsError, match=r"has no config\.json, tokenizer\.json, \*\.safetensors"
    ):
        hf_weights.find_weights(str(tmp_path), data=tmp_path)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    assert hf_weights.find_weights(str(tmp_path), data=tmp_path) == tmp_path
    with pytest.raises(hf_weights.WeightsError, match="allowed: ORGANISATION/NAME"):
        hf_weights.find_weights("llama-3-8b", data=tmp_path)


def test_weights_of_a_bucket_are_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, calls = tmp_path / "models" / "s3--team--llama", list[tuple[str, ...]]()

    def aws(*arguments: str) -> str:
        calls.append(arguments)
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (folder / name).write_text("{}")
        return ""

    monkeypatch.setattr(dataset_bucket, "_aws", aws)
    for _ in range(2):
        assert hf_weights.find_weights("s3://team/llama", data=tmp_path) == folder
    assert [call[:4] for call in calls] == [("s3", "sync", "--only-show-errors", "s3://team/llama/")]


def test_weights_of_the_hub_are_resumed_and_kept(served: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "org--model@v1"
    folder.mkdir(parents=True)
    part = folder / f".{FILES[1]}.part"
    part.write_bytes(b"X" * 100 * len(FILES[1]))
    with pytest.raises(hf_weights.WeightsError, match=r"org/model.* cannot be downloaded .* its sha256 is"):
        hf_weights.find_weights("org/model@v1", data=tmp_path)
    assert not (folder / hf_weights.STAMP).exists()
    part.write_bytes(FILES[1].encode() * 50)
    for _ in range(2):
        assert hf_weights.find_weights("org/model@v1", data=tmp_path) == folder
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        hf_weights.STAMP: f"{COMMIT}\n".encode(),
        **{name: name.encode() * 100 for name in FILES},
    }
    asked = (f"/org/model/resolve/{COMMIT}/{FILES[1]}", f"bytes={50 * len(FILES[1])}-")
    assert served.requests.count(asked) == 1


def test_refusals_of_hub_say_what_to_do(served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(name: str, sentence: str) -> None:
        with pytest.raises(hf_weights.WeightsError, match=sentence):
            hf_weights.find_weights(name, data=tmp_path)

    refuses("org/none@v2", "hub has no org/none@v2 that this token may see")
    served.token = "secret"
    refuses("org/model", "org/model is gated: accept its terms")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text("secret\n")
    assert hf_weights.find_weights("org/model", data=tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    refuses("org/other", r"cannot be downloaded \(could not fetch .*INIT_FROM=")
