"""The parts of a plan that need no account: the CDK's lines and differences of configs."""

import stat
from pathlib import Path

import pytest

from ops.plan.resources import parse_diff, read_resource_changes
from ops.usage import OpsError
from training_cluster.paths import ROOT
from training_cluster.pcluster.config_diff import covers, differences, shown

# As the pinned CLI's formatter writes (aws-cdk 2.1148.1, @aws-cdk/cloudformation-diff/lib/format.ts).
DIFF = """\
start: Building ...
Stack NetworkStack
There were no differences
Stack TrainingClusterStack (TrainingClusterStack-two)
IAM Statement Changes
│ + │ ${Cluster/Role.Arn} │ Allow │ sts:AssumeRole │
Metadata
[~] Metadata training-cluster:flags: {"family":"p4d"} to {"family":"p5"}

Resources
[~] Custom::TrainingCluster Cluster/Cluster/Default ClusterE5 may be replaced
 └─ [~] ClusterName (may cause replacement)
     ├─ [-] a
     └─ [+] b
[+] AWS::IAM::ManagedPolicy LoginPolicy LoginPolicy0C
[-] AWS::EC2::PlacementGroup PlacementGroup PlacementGroup9D destroy
[-] AWS::S3::Bucket Bucket Bucket1 orphan
[~] AWS::EC2::KeyPair KeyPair KeyPair16 replace

Outputs
[+] Output Dashboard: {"Value":"x"}

Number of stacks with differences: 1
"""


def test_only_resource_lines_of_each_stack_are_read() -> None:
    found = [(each.stack, each.kind, each.type, each.name) for each in parse_diff(DIFF)]
    stack = "TrainingClusterStack"
    assert found == [
        (stack, "may be replaced", "Custom::TrainingCluster", "Cluster/Cluster/Default"),
        (stack, "added", "AWS::IAM::ManagedPolicy", "LoginPolicy"),
        (stack, "removed", "AWS::EC2::PlacementGroup", "PlacementGroup"),
        (stack, "removed, and kept", "AWS::S3::Bucket", "Bucket"),
        (stack, "replaced", "AWS::EC2::KeyPair", "KeyPair"),
    ]


def _cdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    cdk = tmp_path / "cdk"
    cdk.write_text(f"#!/bin/sh\n{script}\n")
    cdk.chmod(cdk.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr("ops.plan.resources._CDK", cdk)


def test_the_cdk_gets_the_flags_without_change_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _cdk(
        tmp_path,
        monkeypatch,
        f'echo "$@" in "$PWD" > {tmp_path}/asked; echo "Stack A"; echo "[+] AWS::X::Y Name Id"',
    )
    monkeypatch.chdir(tmp_path)
    (found,) = read_resource_changes(["nodes=4", "tags=a=b c"])
    assert (found.stack, found.name) == ("A", "Name")
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("diff TrainingClusterStack --method=template")
    assert f"--context nodes=4 --context tags=a=b c in {ROOT}\n" in asked
    assert not Path(asked.split("--output ")[1].split()[0]).exists(), "its cloud assembly is removed"


def test_a_failing_or_missing_cdk_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _cdk(tmp_path, monkeypatch, "echo no such flag >&2; exit 1")
    with pytest.raises(OpsError, match=r"(?s)cdk diff failed:\n  no such flag\n  type: .*--no-diff"):
        read_resource_changes([])
    monkeypatch.setattr("ops.plan.resources._CDK", tmp_path / "none")
    with pytest.raises(OpsError, match="npm ci"):
        read_resource_changes([])


def test_differences_have_the_librarys_paths() -> None:
    before = {"Queues": [{"Name": "gpu", "Max": 2, "List": [1]}, {"Name": "old"}], "Same": 1}
    after = {
        "Queues": [{"Name": "gpu", "Max": 4, "List": [1, 2]}, {"Name": "new"}],
        "Same": 1,
        "More": {"A": 1},
    }
    assert list(differences(before, after)) == [
        ("Queues[gpu].Max", 2, 4),
        ("Queues[gpu].List", [1], [1, 2]),
        ("Queues[old]", {"Name": "old"}, None),
        ("Queues[new]", None, {"Name": "new"}),
        ("More", None, {"A": 1}),
    ]
    assert covers("Queues", "Queues[gpu].Max")
    assert covers("Queues[gpu].Max", "Queues[gpu]")
    assert not covers("Queues[gpu].Max", "Queues[gpu].MaxCount")
    assert (shown(None), shown({"Name": "gpu"}), shown("x" * 99)) == ("-", "gpu", f"{'x' * 60} ...")
