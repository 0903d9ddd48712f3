"""The parts of a plan that need no account: deployed flags, the CDK's lines, differences of configs."""

import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from ops.account.deployed_flags import guarded_values
from ops.plan.deployed import Deployed, DeployedStack
from ops.plan.flags import former_settings
from ops.plan.resources import parse_diff, read_resource_changes
from ops.usage import OpsError
from tests.unit.ops.plan.test_plan import templates_of
from training_cluster.flags.given import GIVEN_FLAGS, given_flags, read_given_flags
from training_cluster.paths import ROOT
from training_cluster.pcluster.config_diff import covers, differences, shown
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import STACK_IDS

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


Synthesise = Callable[..., dict[str, Template]]
_NAMES = {id_: name for name, id_ in STACK_IDS.items()}
FLAGS = {"family": "p5", "nodes": "4", "endpoints": "private", "fsx_gib": "2400", "home": "efs"}


def _deployed(templates: Mapping[str, Mapping[str, Any]]) -> Deployed:
    stacks = {name: DeployedStack(id=name, outputs={}, template=each) for name, each in templates.items()}
    return Deployed(region="us-east-1", stacks=stacks, cluster_stack=stacks["TrainingClusterStack"])


@pytest.mark.slow
@pytest.mark.parametrize("flags", [{}, FLAGS], ids=["defaults", "flags"])
def test_fake_templates_agree_with_the_real_ones(flags: dict[str, str], synthesise: Synthesise) -> None:
    settings = read_settings(flags)
    real = _deployed({_NAMES.get(id_, id_): each.to_json() for id_, each in synthesise(**flags).items()})
    made = _deployed(templates_of(settings))
    network = {"private_subnet_id", "security_group_id"}  # of StorageStack's guard: known at deploy only
    expected = {k: v for k, v in guarded_values(made.templates).items() if k not in network}
    assert {k: v for k, v in guarded_values(real.templates).items() if k not in network} == expected
    before, why = former_settings(settings, real)
    assert (before, why) == (settings, "")


def test_flags_of_another_release_are_not_guessed() -> None:
    assert read_given_flags({"Resources": {}}) is None
    templates = templates_of(read_settings({}))
    del templates["TrainingClusterStack"]["Metadata"]
    before, why = former_settings(read_settings({}), _deployed(templates))
    assert before is None
    assert "did not record flags" in why
    templates = templates_of(read_settings({}))
    templates["TrainingClusterStack"]["Metadata"][GIVEN_FLAGS]["gone"] = "1"
    before, why = former_settings(read_settings({}), _deployed(templates))
    assert before is None
    assert why.startswith("this release of the app refuses the flags of the last deploy")


def test_only_what_differs_is_written_down() -> None:
    assert given_flags(read_settings({})) == {"family": "p4d"}
    assert given_flags(read_settings({"nodes": "4", "on_busy": "stop"})) == {"family": "p4d", "nodes": 4}
