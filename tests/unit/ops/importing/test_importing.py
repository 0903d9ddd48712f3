"""`trainctl import`: forty-two configs with the keys that others set, and files that have none."""

from __future__ import annotations

import datetime
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.__main__ import main
from ops.importing.command import Imported, import_config
from ops.importing.config_file import read_config_file
from tests.unit.ops.fake_account import Account, Refused
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

SAMPLES = sorted((ROOT / "rehearsal" / "validation" / "imports").glob("*.yaml"))
PLAIN = ROOT / "rehearsal" / "validation" / "imports" / "plain.yaml"


def imported(file: Path, folder: Path) -> Imported:
    return import_config(read_config_file(file), folder / "out")


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["trainctl", "import", *arguments])
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


def test_there_are_forty_samples() -> None:
    assert len(SAMPLES) >= 40


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_a_config_loses_what_its_second_line_says(file: Path, tmp_path: Path) -> None:
    found = imported(file, tmp_path)
    expected = file.read_text().splitlines()[1].removeprefix("# lost: ")
    assert [each.partition(": ")[0] for each in found.lost] == (
        [] if expected == "nothing" else expected.split(", ")
    )
    assert found.problem == ""
    assert found.is_complete == (expected == "nothing")


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_the_files_render_the_imported_values(file: Path, tmp_path: Path) -> None:
    found, theirs = imported(file, tmp_path), yaml.safe_load(file.read_text())
    context = json.loads((tmp_path / "out" / "flags.json").read_text())["context"]
    ours = config_before_deploy(read_settings(context))
    assert context == found.flags
    queues = {each["Name"]: each for each in ours["Scheduling"]["SlurmQueues"]}
    assert list(queues) == [each["Name"] for each in theirs["Scheduling"]["SlurmQueues"]]
    for queue in theirs["Scheduling"]["SlurmQueues"]:
        for mine, other in zip(
            queues[queue["Name"]]["ComputeResources"], queue["ComputeResources"], strict=True
        ):
            for key in other.keys() - {"Efa"}:
                assert mine[key] == other[key], key
            assert mine["Efa"]["Enabled"] == other.get("Efa", {}).get("Enabled", False)
    assert ours["HeadNode"]["InstanceType"] == theirs["HeadNode"]["InstanceType"]


def test_each_difference_is_shown_with_both_values(tmp_path: Path) -> None:
    found = imported(PLAIN, tmp_path)
    changes = {path: (old, new) for path, old, new in found.changes}
    assert changes["HeadNode.Imds"] == (None, {"Secured": True})
    assert changes["HeadNode.Ssh.KeyName"][0] == "training"


def _template(folder: Path, config: Any) -> Path:
    file = folder / "template.json"
    resource = {"Type": "Custom::Cluster", "Properties": {"ClusterConfiguration": config}}
    file.write_text(json.dumps({"Resources": {"Cluster": resource, "Other": {"Type": "AWS::S3::Bucket"}}}))
    return file


def test_a_template_has_the_config_as_a_mapping_or_as_text_with_references(tmp_path: Path) -> None:
    config = yaml.safe_load(PLAIN.read_text())
    assert read_config_file(_template(tmp_path, config)) == config
    text = json.dumps(config)
    assert read_config_file(_template(tmp_path, text)) == config
    head, tail = text.split("us-east-1")
    joined = {"Fn::Join": ["", [head, {"Ref": "AWS::Region"}, tail]]}
    assert read_config_file(_template(tmp_path, joined))["Region"] == "${AWS::Region}"
    short = tmp_path / "short.yaml"
    short.write_text(
        "Resources:\n  Cluster:\n    Properties:\n      ClusterConfiguration:\n"
        "        HeadNode: {Networking: {SubnetId: !Ref Subnet}}\n        Scheduling: {Scheduler: slurm}\n"
    )
    assert read_config_file(short)["HeadNode"]["Networking"]["SubnetId"] == {"Ref": "Subnet"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no HeadNode and Scheduling"),
        ("a: [", "while parsing"),
        ("[1, 2]", "no HeadNode and Scheduling"),
        ("HeadNode: {}", "no HeadNode and Scheduling"),
        ("[cluster]\nmaster_instance_type = c5.xlarge\n", "is no ParallelCluster 3 cluster config"),
        ("HeadNode: {}\nScheduling: {Scheduler: awsbatch}", "Scheduling.Scheduler is awsbatch"),
        ('{"Resources": {"B": {"Type": "AWS::S3::Bucket"}}}', "no HeadNode and Scheduling"),
    ],
)
def test_a_file_without_a_config_is_one_message(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    assert call(monkeypatch, str(file), "--out", str(tmp_path / "out")) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (str(PLAIN), "--out", str(tmp_path / "out"))
    assert call(monkeypatch, *arguments) == 0
    assert "Lost: nothing." in capsys.readouterr().out
    assert call(monkeypatch, *arguments) == 2
    assert "another folder" in capsys.readouterr().err


def test_the_exit_code_says_whether_something_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = str(PLAIN.with_name("roles.yaml"))
    assert call(monkeypatch, roles, "--out", str(tmp_path / "out"), "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["complete"] is False
    assert said["import"]["lost"][0].startswith("HeadNode.Iam.InstanceRole")
    assert call(monkeypatch, "--out", str(tmp_path / "b")) == 2
    assert call(monkeypatch, roles, "--cluster", "x", "--out", str(tmp_path / "b")) == 2


def test_a_running_cluster_is_read_from_its_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = {"ResourcesS3Bucket": "b", "ArtifactS3RootDirectory": "d", "ConfigVersion": "v"}
    stack = {
        "StackName": "mine",
        "StackStatus": "CREATE_COMPLETE",
        "CreationTime": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
    }
    account = Account(
        {
            "DescribeStacks": lambda asked: (
                {"Stacks": [stack]}
                if asked["StackName"] == "mine"
                else Refused("ValidationError", "Stack does not exist")
            ),
            "GetObject": lambda _: {"Body": io.BytesIO(PLAIN.read_bytes())},
        }
    )
    monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
    assert call(monkeypatch, "--cluster", "mine", "--out", str(tmp_path / "out")) == 0
    assert call(monkeypatch, "--cluster", "other", "--out", str(tmp_path / "b")) == 1
    assert "no cluster other in this region" in capsys.readouterr().err
