"""`trainctl sync`: what it lets `aws s3 sync` do, and what it refuses."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import Call, stack

BUCKET = "trainingcluster-storage-bucket-x1"


@pytest.fixture
def account() -> Account:
    def listed(asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["Bucket"] == BUCKET
        objects = ("datasets/a/1", "checkpoints/gpt2/my-run/latest_step")
        below = [each for each in objects if each.startswith(asked["Prefix"])]
        folders = {each.removeprefix(asked["Prefix"]).partition("/")[0] for each in below}
        common = [{"Prefix": f"{asked['Prefix']}{each}/"} for each in sorted(folders)]
        return {"KeyCount": len(below), "CommonPrefixes": common if asked.get("Delimiter") else []}

    stacks = [stack("TrainingCluster-Storage", BucketName=BUCKET)]
    return Account({"DescribeStacks": {"Stacks": stacks}, "ListObjectsV2": listed})


@pytest.fixture
def sync(account: Account, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a function that runs trainctl sync, with an `aws` that says what it was asked."""
    (tmp_path / "bin").mkdir()
    aws = tmp_path / "bin" / "aws"
    aws.write_text('#!/bin/bash\necho "aws $*"\nexit "${AWS_ENDS_WITH:-0}"\n')
    aws.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
    return partial(call, "sync")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "corpus"
    path.mkdir()
    return path


@pytest.mark.parametrize("target", ["datasets/corpus", "datasets/corpus/", "/fsx/datasets/corpus"])
def test_an_uploaded_folder_appears_on_the_nodes(target: str, sync: Call, folder: Path) -> None:
    code, said, _ = sync("up", str(folder), target)
    copied, note = said.splitlines()
    assert code == 0
    assert copied == f"aws s3 sync {folder} s3://{BUCKET}/datasets/corpus/ --region us-east-1 --no-progress"
    assert "imports new and changed objects to /fsx/datasets/corpus automatically" in note


def test_checkpoints_come_from_the_bucket(sync: Call, tmp_path: Path) -> None:
    code, said, _ = sync("down", "checkpoints/gpt2/my-run", str(tmp_path / "new"))
    copied, note = said.splitlines()
    assert code == 0
    source = f"s3://{BUCKET}/checkpoints/gpt2/my-run/"
    assert copied == f"aws s3 sync {source} {tmp_path / 'new'} --region us-east-1 --no-progress"
    assert "to the bucket automatically" in note


def test_missing_objects_are_not_reported_as_copied(sync: Call, tmp_path: Path) -> None:
    for source, said in (
        ("checkpoints/gpt2/myrun", 'Did you mean "checkpoints/gpt2/my-run"?'),
        ("dataset", "allowed: checkpoints, datasets"),
        ("datasets/a/none/b", "its parent is empty, too"),
    ):
        code, out, error = sync("down", source, str(tmp_path / "new"))
        assert (code, out) == (1, "")
        assert f"The bucket has no objects below {source}/." in error
        assert said in error
        assert not (tmp_path / "new").exists()


def test_a_copy_says_what_it_did(sync: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said, _ = sync("up", str(folder), "datasets/a", "--dry-run")
    assert code == 0
    assert said.endswith(" --dryrun --no-progress\n")
    code, said, shown = sync("up", str(folder), "my-own/a", "--json")
    told = json.loads(said)
    assert (code, told["dry_run"], told["transfer"]["target"]) == (0, False, f"s3://{BUCKET}/my-own/a/")
    assert "in the bucket only" in told["transfer"]["note"]
    assert shown.startswith("aws s3 sync ")
    monkeypatch.setenv("AWS_ENDS_WITH", "2")
    code, _, said = sync("up", str(folder), "datasets/a")
    assert code == 1
    assert said.startswith("`aws s3 sync` failed with exit code 2")


def test_without_a_bucket_it_says_so(sync: Call, folder: Path, account: Account) -> None:
    for answer, said in (
        (
            Refused("ValidationError", "Stack with id TrainingCluster-Storage does not exist"),
            "There is no TrainingCluster-Storage in us-",
        ),
        (
            {"Stacks": [stack("TrainingCluster-Storage", status="CREATE_IN_PROGRESS")]},
            "it is CREATE_IN_PROGRESS",
        ),
    ):
        account.answers["DescribeStacks"] = answer
        code, _, error = sync("up", str(folder), "datasets/a")
        assert code == 1
        assert said in error
