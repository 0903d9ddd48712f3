"""The binary data of roberta: what its manifest says, and its way through the bucket."""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path

# What roberta asks of the aws program, with a folder as the bucket.
AWS = """#!{python}
import json, pathlib, shutil, sys
bucket = pathlib.Path({bucket!r})
given = sys.argv[1:]
def at(url): return bucket / url.removeprefix("s3://team/")
if given[:2] == ["s3api", "head-object"]:
    file = bucket / given[5]
    if not file.is_file(): sys.exit("An error occurred (404) when calling HeadObject: Not Found")
    note = file.with_name(file.name + ".metadata")
    metadata = dict(pair.split("=") for pair in note.read_text().split(",")) if note.is_file() else {{}}
    print(json.dumps({{"ContentLength": file.stat().st_size, "Metadata": metadata}}))
else:
    source, target = given[-2:]
    if target == "-": print(at(source).read_text(), end="")
    elif source.startswith("s3://"): shutil.copy(at(source), target)
    else:
        at(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, at(target))
        at(target).with_name(at(target).name + ".metadata").write_text(given[given.index("--metadata") + 1])
"""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    monkeypatch.delenv("TRAINING_BUCKET", raising=False)
    with workload_on_the_path(monkeypatch, "roberta") as load:
        yield load


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def data_folder(load: Import, folder: Path, *, fingerprint: str = "abc") -> Path:
    binary_data = load("binary_data")
    folder.mkdir(parents=True)
    for name in ("encoder.json", "vocab.bpe", "dict.txt", "train.bin", "train.idx"):
        (folder / name).write_bytes(os.urandom(20))
    manifest = binary_data.Manifest(
        fingerprint=fingerprint,
        corpus="machine",
        vocab_size=300,
        symbols=305,
        tokens={"train": 10},
        files=binary_data.describe(folder),
    )
    binary_data.write_manifest(folder, manifest)
    return folder


def test_data_is_what_its_manifest_says(load: Import, tmp_path: Path) -> None:
    binary_data = load("binary_data")
    folder = data_folder(load, tmp_path / "data")
    manifest = binary_data.open_data(folder)
    binary_data.check_data(folder, manifest)
    assert (manifest.symbols, manifest.tokens) == (305, {"train": 10})
    assert manifest.dictionary_sha256 == sha256(folder / "dict.txt")


def test_wrong_data_is_told_with_the_file(load: Import, tmp_path: Path) -> None:
    binary_data, error = load("binary_data"), load("trainkit.data.shards").ShardError
    folder = data_folder(load, tmp_path / "data")
    manifest = binary_data.open_data(folder)
    (folder / "train.bin").write_bytes(os.urandom(20))
    with pytest.raises(error, match=rf"train\.bin is corrupt: its sha256 is .*; remove {folder}, and submit"):
        binary_data.check_data(folder, manifest)
    (folder / "train.bin").write_bytes(b"")
    with pytest.raises(error, match=r"train\.bin is corrupt: it has 0 bytes, manifest\.json says 20"):
        binary_data.check_data(folder, manifest)
    (folder / "train.bin").unlink()
    with pytest.raises(error, match=rf"train\.bin is missing; remove {folder}"):
        binary_data.check_data(folder, manifest)
    (folder / "manifest.json").write_text('{"format": 2, "files": []}')
    with pytest.raises(binary_data.DataError, match="of another format"):
        binary_data.open_data(folder)
    (folder / "manifest.json").write_text("[]")
    with pytest.raises(binary_data.DataError, match="is not a manifest"):
        binary_data.open_data(folder)
    with pytest.raises(binary_data.DataError, match=r"there is no data in .*prepare\.sh makes it"):
        binary_data.open_data(tmp_path)


@pytest.fixture
def bucket(load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    programs, stored = tmp_path / "bin", tmp_path / "bucket"
    programs.mkdir()
    aws = programs / "aws"
    aws.write_text(AWS.format(python=sys.executable, bucket=str(stored)))
    aws.chmod(aws.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TRAINING_BUCKET", "team")
    return load("trainkit.data.dataset_bucket").DatasetBucket.of_workload("roberta")


@pytest.mark.slow
def test_data_made_on_one_cluster_is_taken_from_the_bucket_by_the_next(
    load: Import, bucket: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary_data = load("binary_data")
    made = data_folder(load, tmp_path / "one" / "machine-bpe-300")
    binary_data.upload(bucket, made, binary_data.open_data(made))
    assert (tmp_path / "bucket" / "datasets" / "roberta" / "machine-bpe-300" / "train.bin").is_file()
    capsys.readouterr()
    binary_data.upload(bucket, made, binary_data.open_data(made))
    assert capsys.readouterr().out == "", "what is there is not brought again"

    taken = tmp_path / "two" / "machine-bpe-300"
    assert not binary_data.download(bucket, taken, fits=lambda manifest: manifest.fingerprint == "other")
    assert not taken.exists()
    # An interrupted start left a part of other data there.
    taken.mkdir(parents=True)
    (taken / "train.bin").write_bytes(os.urandom(20))
    assert binary_data.download(bucket, taken, fits=lambda manifest: manifest.fingerprint == "abc")
    assert binary_data.open_data(taken) == binary_data.open_data(made)
    binary_data.check_data(taken, binary_data.open_data(taken))


def test_the_bucket_without_data_gives_none(load: Import, bucket: Any, tmp_path: Path) -> None:
    assert not load("binary_data").download(bucket, tmp_path / "machine-bpe-300", fits=lambda _: True)


def test_the_corpus_lies_in_the_bucket_or_comes_from_the_web(
    load: Import, bucket: Any, tmp_path: Path
) -> None:
    fetch = load("trainkit.data.fetch")
    stored = tmp_path / "bucket" / "datasets" / "roberta" / "raw" / "gpt2_bpe" / "dict.txt"
    stored.parent.mkdir(parents=True)
    stored.write_text("0 1\n")
    file = tmp_path / "data" / "raw" / "gpt2_bpe" / "dict.txt"
    fetch.ensure_file(file, url="file:///none", key="raw/gpt2_bpe/dict.txt", bucket=bucket)
    assert file.read_text() == "0 1\n"
