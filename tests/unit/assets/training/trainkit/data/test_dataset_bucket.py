"""Files in the cluster's bucket: read and written with the aws program, whole or not at all."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path

CONTENT = b"tokens"
SUM = hashlib.sha256(CONTENT).hexdigest()
# Answers head-object as a test says, notes each copy, and copies CONTENT out of the bucket.
AWS = """#!/bin/bash
if [ "$2" = head-object ]; then {head}; fi
echo "$*" >> {folder}/calls
case "${{@: -1}}" in s3:*) ;; *) printf '{content}' > "${{@: -1}}" ;; esac
"""
Bucket = Callable[..., Any]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        module = load("trainkit.data.dataset_bucket")
    monkeypatch.setenv("TRAINING_BUCKET", "team")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(head: str = "exit 0") -> Any:
        aws = tmp_path / "aws"
        aws.write_text(AWS.format(head=head, folder=tmp_path, content=CONTENT.decode()))
        aws.chmod(0o755)
        return module.DatasetBucket.of_workload("gpt2")

    return make


def test_without_a_bucket_of_the_cluster_there_is_no_folder(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bucket().url("a") == "s3://team/datasets/gpt2/a"
    monkeypatch.delenv("TRAINING_BUCKET")
    assert bucket() is None


@pytest.mark.parametrize("code", [404, 403])
def test_a_missing_object_is_none_also_where_the_bucket_may_not_be_listed(bucket: Bucket, code: int) -> None:
    assert bucket(f"echo 'An error occurred ({code}) when calling' >&2; exit 254").head("a") is None


def test_a_bucket_that_does_not_answer_is_an_error_in_one_sentence(bucket: Bucket) -> None:
    with pytest.raises(Exception, match=r"^aws s3api head-object: could not connect$") as raised:
        bucket("echo trace >&2; echo 'could not connect' >&2; exit 255").head("a")
    assert type(raised.value).__name__ == "BucketError"


def test_a_file_with_another_sum_is_refused_and_leaves_nothing(bucket: Bucket, tmp_path: Path) -> None:
    file = tmp_path / "taken" / "a.bin"
    with pytest.raises(Exception, match=r"s3://team/datasets/gpt2/a\.bin is corrupt"):
        bucket().download("a.bin", file, sha256="0" * 64)
    assert list(file.parent.iterdir()) == []
    bucket().download("a.bin", file, sha256=SUM)
    assert file.read_bytes() == CONTENT


@pytest.mark.parametrize(("stored", "sent"), [(SUM, False), ("0" * 64, True)])
def test_a_file_is_sent_once_with_owner_and_mode_as_fsx_reads_them(
    bucket: Bucket, tmp_path: Path, stored: str, sent: bool
) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(CONTENT)
    file.chmod(0o640)
    head = json.dumps({"ContentLength": len(CONTENT), "Metadata": {"sha256": stored}})
    assert bucket(f"echo '{head}'; exit 0").upload(file, "a.bin", sha256=SUM) is sent
    calls = tmp_path / "calls"
    assert calls.exists() is sent
    if sent:
        assert f"sha256={SUM},file-owner={os.getuid()}," in calls.read_text()
        assert "file-permissions=0100640" in calls.read_text()
