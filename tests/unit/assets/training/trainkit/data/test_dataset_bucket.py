"""Files in the cluster's bucket: whole or not at all, and never sent twice."""

import json
import os
from pathlib import Path

import pytest
from trainkit.data import dataset_bucket
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.fetch import ensure_file
from trainkit.data.shards import Manifest, Shard, sha256_of, write_manifest


def folder_bucket(root: Path, monkeypatch: pytest.MonkeyPatch) -> DatasetBucket:
    """Return the bucket of gpt2, whose objects are a folder's files; a nightly test has a real S3 and aws."""

    def at(url: str) -> Path:
        return root / url.removeprefix("s3://team/")

    def aws(*arguments: str) -> str:
        if arguments[1] == "head-object":
            file = root / arguments[5]
            if not file.is_file():
                raise BucketError("aws s3api head-object: An error occurred (404) when calling HeadObject")
            return json.dumps({"ContentLength": file.stat().st_size, "Metadata": metadata.get(str(file), {})})
        source, target = arguments[-2:]
        if target == "-":
            return at(source).read_text()
        file = at(target) if target.startswith("s3://") else Path(target)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((at(source) if source.startswith("s3://") else Path(source)).read_bytes())
        if "--metadata" in arguments:
            pairs = arguments[arguments.index("--metadata") + 1].split(",")
            metadata[str(file)] = dict(pair.split("=") for pair in pairs)
        return ""

    metadata: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(dataset_bucket, "_aws", aws)
    monkeypatch.setenv("TRAINING_BUCKET", "team")
    bucket = DatasetBucket.of_workload("gpt2")
    assert bucket
    return bucket


def test_a_silent_bucket_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    aws, bucket = tmp_path / "aws", DatasetBucket("team", "datasets/gpt2")
    aws.touch(mode=0o755)
    for said in ("An error occurred (404) when calling", "An error occurred (403) when calling"):
        aws.write_text(f"#!/bin/sh\necho '{said}' >&2; exit 254\n")
        assert bucket.head("a") is None, "a bucket that may not be listed answers 403"
    aws.write_text("#!/bin/sh\necho trace >&2; echo 'could not connect' >&2; exit 255\n")
    with pytest.raises(BucketError, match=r"^aws s3api head-object: could not connect$"):
        bucket.head("a")


def shards_in(made: Path) -> tuple[Shard, Shard, Manifest]:
    """Write shards into a folder."""
    made.mkdir()
    for name in ("train-00000.bin", "val-00000.bin", "tokenizer.json"):
        (made / name).write_bytes(name.encode())
    train, val = (Shard(n, len(n) // 2, sha256_of(made / n)) for n in ("train-00000.bin", "val-00000.bin"))
    splits: dict[str, tuple[Shard, ...]] = {"train": (train,), "val": (val,)}
    manifest = Manifest(dtype="uint16", vocab_size=9, tokenizer_sha256="", source={}, splits=splits)
    write_manifest(made, manifest)
    return train, val, manifest


def test_one_of_several_users_uploads_for_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not upload again what an admin uploaded for all."""
    monkeypatch.setenv("TRAINING_UPLOADS", "users/alice")
    bucket, made = folder_bucket(tmp_path / "bucket", monkeypatch), tmp_path / "made"
    _, _, manifest = shards_in(made)
    bucket.upload_shards("s", made, manifest)
    own, shared = (tmp_path / "bucket" / each / "gpt2/s" for each in ("users/alice/datasets", "datasets"))
    assert len(list(own.iterdir())) == 4
    assert not shared.exists()
    shared.parent.mkdir(parents=True)
    own.rename(shared)
    bucket.upload_shards("s", made, manifest)
    assert not own.exists()


def test_shards_go_to_the_bucket_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert DatasetBucket.of_workload("gpt2") is None
    bucket, made = folder_bucket(tmp_path / "bucket", monkeypatch), tmp_path / "made"
    train, val, manifest = shards_in(made)
    (made / train.file).write_bytes(bytes(2 * train.tokens))
    with pytest.raises(BucketError, match="s3://team/datasets/gpt2/s has no manifest"):
        bucket.download_shards("s", tmp_path / "taken")
    bucket.upload_shards("s", made, manifest)
    sent = bucket.head("s/val-00000.bin")
    assert sent
    assert sent["Metadata"] == {
        "sha256": val.sha256,
        "file-owner": str(os.getuid()),
        "file-group": str(os.getgid()),
        "file-permissions": f"0100{(made / val.file).stat().st_mode & 0o777:o}",
    }, "FSx reads owner and mode"
    with pytest.raises(BucketError, match=r"s3://team/datasets/gpt2/s/train-00000\.bin is corrupt"):
        bucket.download_shards("s", tmp_path / "taken")
    assert not (tmp_path / "taken" / train.file).exists()
    assert not list((tmp_path / "taken").glob(".train*"))

    (made / train.file).write_bytes(train.file.encode())
    (tmp_path / "bucket/datasets/gpt2/s/manifest.json").unlink()
    assert not bucket.upload(made / val.file, "s/val-00000.bin", sha256=val.sha256)
    # The bucket says of its object what it was sent with.
    assert bucket.upload(made / train.file, "s/train-00000.bin", sha256="0" * 64)
    bucket.upload_shards("s", made, manifest)
    capsys.readouterr()
    bucket.upload_shards("s", made, manifest)
    assert capsys.readouterr().out == "", "nothing is sent twice"
    bucket.download_shards("s", tmp_path / "taken")
    assert "taken from s3://team/datasets/gpt2/s" in capsys.readouterr().out
    taken = {file.name: file.read_bytes() for file in (tmp_path / "taken").iterdir()}
    assert taken == {file.name: file.read_bytes() for file in made.iterdir()}
    # Other files come from the bucket, too, before they come from the web.
    ensure_file(tmp_path / "raw", url="file:///none", key=f"s/{val.file}", bucket=bucket, sha256=val.sha256)
    assert (tmp_path / "raw").read_bytes() == val.file.encode()
