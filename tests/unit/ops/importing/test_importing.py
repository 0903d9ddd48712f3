"""`trainctl import`: configs with the keys that others set, and files that have none."""

import io
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.importing.command import Imported, import_config
from ops.importing.comparison import ids_of, in_their_keys
from ops.importing.config_file import read_config_file
from ops.importing.render import render_imported
from rehearsal.validation.samples import import_samples
from tests.unit.ops.fake_account import Account, FakeStack, stack_answers
from tests.unit.ops.jobs_head_node import Call
from tests.unit.pcluster_library import refusals
from training_cluster.cluster.config import render_cluster_config
from training_cluster.flags.account import CLUSTER_TAG
from training_cluster.flags.settings import Settings
from training_cluster.overrides.merge import merge
from training_cluster.overrides.nodes import placed_nodes
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER

SAMPLES = import_samples()
PLAIN = SAMPLES["plain"].config


class Import:
    """A sample that was imported, and the config that its files render."""

    def __init__(self, name: str, folder: Path) -> None:
        self.theirs, self.folder = SAMPLES[name].config, folder / "out"
        self.found = import_config(self.theirs, self.folder)
        settings = settings_of(self.found)
        ids = ids_of(settings, self.found.region or "us-east-1")
        self.ours = render_cluster_config(settings=settings, ids=ids)
        self.seen = in_their_keys(self.ours, settings)


Imports = Callable[[str], Import]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imports:
    """Return a function that imports each sample once."""
    return cache(lambda name: Import(name, tmp_path_factory.mktemp(name)))


@pytest.fixture
def imports(call: Call, tmp_path: Path) -> Call:
    """Return a function that runs trainctl import, into the folder out by default."""
    return partial(call, "import", "--out", str(tmp_path / "out"))


def settings_of(found: Imported) -> Settings:
    """Read the file of flags, as the line `Next:` names it."""
    return read_settings({"flags": str(found.files[0])})


def written(name: str, folder: Path) -> str:
    """Write a sample to a file; return its path."""
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(SAMPLES[name].config, sort_keys=False))
    return str(file)


QUEUE = "Scheduling.SlurmQueues[queue1]"
OURS = "sg-0cccccccccccccccc"
RENDERED: dict[str, dict[str, Any]] = {
    "reservation-each": {
        f"{QUEUE}.CapacityReservationTarget": None,
        f"{QUEUE}.ComputeResources[queue1-1].Networking": None,
        f"{QUEUE}.ComputeResources[queue1-3].Networking.PlacementGroup": {"Enabled": True, "Name": "mine"},
    },
    "image-of-all": {
        "Image.CustomAmi": None,
        "HeadNode.Image.CustomAmi": "ami-0123456789abcdef0",
        f"{QUEUE}.Image.CustomAmi": "ami-0123456789abcdef0",
    },
    "several-groups": {
        "HeadNode.Networking.SecurityGroups": [OURS, "sg-0123456789abcdef0", "sg-0123456789abcdef1"],
        f"{QUEUE}.Networking.SecurityGroups": [OURS, "sg-0123456789abcdef2"],
    },
    "two-pools": {
        "LoginNodes.Pools[two].CustomActions.OnNodeConfigured.Script": (
            f"s3://bucket/bootstrap/{CLUSTER}/bootstrap.sh"
        )
    },
    "directory": {
        "DirectoryService.LdapTlsReqCert": "hard",
        "DirectoryService.AdditionalSssdConfigs": {"filter_groups": "nobody,root,admin,sudo,wheel"},
    },
}


def value_at(config: Any, path: str) -> Any:
    for part in re.findall(r"\[[^]]+\]|[^.\[]+", path):
        if part.startswith("["):
            config = next((e for e in config if part[1:-1] in (e.get("Name"), e.get("Key"))), None)
        else:
            config = config.get(part)
        if config is None:
            return None
    return config


def sentences(found: Imported) -> list[str]:
    kinds = (found.lost, found.wider, found.narrower, found.replaced, found.moved, found.fill)
    return [each for kind in kinds for each in kind]


LISTS = ("AdditionalIamPolicies", "S3Access", "CustomSlurmSettings")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of each leaf; items of a list by their Name or Key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict) and not path.endswith(LISTS):
        for each in value:
            if name := each.get("Name", each.get("Key")):
                yield from leaves(each, f"{path}[{name}]")
            else:
                yield path, value
    else:
        yield path, value


def with_our_names(theirs: Any, ours: Any) -> Any:
    theirs = deepcopy(theirs)
    for pool in theirs.get("LoginNodes", {}).get("Pools", [])[:1]:
        pool["Name"] = "login"
    places = {each["MountDir"].strip("/"): each["Name"] for each in ours["SharedStorage"]}
    for each in theirs.get("SharedStorage", []):
        each["MountDir"] = "/" + each["MountDir"].strip("/")
        each["Name"] = places[each["MountDir"].strip("/")]
    return theirs


def is_in(value: Any, ours: Any, path: str) -> bool:
    if ours is None:
        return value in (False, {}, [])
    if path.endswith((*LISTS, "SecurityGroups")) and isinstance(value, list):
        return all(each in ours for each in value)
    return bool(ours == value or (path.endswith("MountDir") and ours.strip("/") == value.strip("/")))


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_not_equal_is_said(name: str, imported: Imports) -> None:
    sample, expected = imported(name), SAMPLES[name].lost
    found = sample.found
    assert tuple(each.partition(": ")[0] for each in found.lost) == expected
    assert (found.problem, found.is_complete) == ("", not (expected or found.wider))
    said = [each.partition(": ")[0] for each in sentences(found)]
    renamed = leaves(with_our_names(sample.theirs, sample.ours))
    for (key, _), (path, value) in zip(leaves(sample.theirs), renamed, strict=True):
        if "${" in str(value):
            assert {*re.findall(r"\$\{(?!AWS::Part)\w+}", str(value))} <= {
                *re.findall(r"\$\{\w+}", str(found.fill))
            }
        elif ".CustomActions." in path:
            assert not isinstance(value, str) or value in str(
                value_at(sample.ours, path.rpartition(".")[0])
            ), path
        elif not is_in(value, value_at(sample.seen, path), path):
            assert [each for each in said if key.startswith(each)], key
    rendered = RENDERED.get(name, {})
    assert {path: value_at(sample.ours, path) for path in rendered} == rendered


@pytest.mark.parametrize("name", SAMPLES)
def test_rights_and_tags_stay_where_they_were(name: str, imported: Imports) -> None:
    sample, login = imported(name), imported("login-nodes")
    app = {
        path.split("[")[0]: node["Iam"]
        for each in (login, imported("plain"))
        for path, node in placed_nodes(each.ours)
    }
    theirs = dict(placed_nodes(with_our_names(sample.theirs, sample.ours)))
    for path, node in placed_nodes(sample.ours):
        given = theirs[path].get("Iam", {})
        if {"InstanceRole", "InstanceProfile"} & {*given}:
            assert [*node["Iam"]] == ["InstanceRole"]
            continue
        for key, own in app[path.split("[")[0]].items():
            added = [each for each in node["Iam"][key] if each not in own]
            assert str(added) == str(given.get(key, [])).replace("${AWS::Partition}", "aws"), path
    tags = {each["Key"]: each["Value"] for each in sample.theirs.get("Tags", [])}
    kept = {key: value for key, value in tags.items() if f"Tags[{key}]" not in SAMPLES[name].lost}
    assert {each["Key"]: each["Value"] for each in sample.ours["Tags"]} == {CLUSTER_TAG: CLUSTER, **kept}


def changed(**keys: Any) -> dict[str, Any]:
    """Return the plain config with other keys."""
    return merge(deepcopy(PLAIN), keys)


@pytest.mark.parametrize(("strategy", "on_busy"), [("DRAIN", "drain"), ("TERMINATE", "stop")])
def test_the_update_strategy_becomes_on_busy(strategy: str, on_busy: str, tmp_path: Path) -> None:
    settings = {"SlurmSettings": {"QueueUpdateStrategy": strategy}}
    found = import_config(changed(Scheduling=settings), tmp_path)
    assert f"{strategy}: type -c on_busy={on_busy} with a deploy" in str(found.moved)
    assert "on_busy" not in found.flags


def test_numbers_in_quotes_groups_and_prologs_are_kept(tmp_path: Path) -> None:
    timeouts = {"HeadNodeBootstrapTimeout": "3600", "ComputeNodeBootstrapTimeout": "${SECONDS}"}
    theirs = changed(
        HeadNode={"LocalStorage": {"RootVolume": {"Size": "100"}}},
        DevSettings={"Timeouts": timeouts},
        Scheduling={
            "SlurmSettings": {"CustomSlurmSettings": [{"PrologFlags": "contain"}, {"MaxJobCount": 1000}]}
        },
    )
    resource = theirs["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]
    resource |= {"MaxCount": "8", "Networking": {"PlacementGroup": {"Name": "mine"}}}
    found = import_config(theirs, tmp_path)
    ours = config_before_deploy(settings_of(found))
    assert found.is_complete
    assert value_at(ours, f"{QUEUE}.ComputeResources[queue1-1].MaxCount") == 8
    assert value_at(ours, f"{QUEUE}.Networking.PlacementGroup") == {"Enabled": True, "Name": "mine"}
    assert value_at(ours, "HeadNode.LocalStorage.RootVolume.Size") == 100
    assert value_at(ours, "DevSettings.Timeouts.HeadNodeBootstrapTimeout") == 3600
    assert value_at(ours, "Monitoring.Logs.CloudWatch.RetentionInDays") == 180, "the library's default"


def test_ports_that_differ_are_narrower_or_wider(tmp_path: Path) -> None:
    default = import_config(changed(), tmp_path / "a")
    assert "HeadNode.Ssh.AllowedIps: port 22 is closed here" in str(default.narrower)
    given = changed(HeadNode={"Ssh": {"AllowedIps": "203.0.113.9/24"}, "Dcv": {"Enabled": True}})
    found = import_config(given, tmp_path / "b")
    assert found.flags["ssh_from"] == "203.0.113.0/24"
    assert "-c ssh_from opens port 22 of compute nodes, too" in str(found.wider)
    assert "does not open the port of DCV" in str(found.narrower)
    found = import_config(changed(HeadNode={"Ssh": {"AllowedIps": "0.0.0.0/0"}}), tmp_path / "everywhere")
    assert (found.flags["ssh_from"], found.flags["ssh_from_anywhere"]) == ("0.0.0.0/0", "yes")
    with_group = merge(given, {"HeadNode": {"Networking": {"SecurityGroups": ["sg-0123456789abcdef0"]}}})
    found = import_config(with_group, tmp_path / "c")
    assert "ssh_from" not in found.flags
    assert "without effect with SecurityGroups" in str(found.moved)
    pool = {"Name": "login", "Count": 1, "InstanceType": "t3.large", "Ssh": {"AllowedIps": "10.0.0.0/8"}}
    pool["Networking"] = {"SubnetIds": ["subnet-0123456789abcdef0"]}
    found = import_config({**given, "LoginNodes": {"Pools": [pool]}}, tmp_path / "d")
    assert "LoginNodes.Pools[login].Ssh.AllowedIps: 10.0.0.0/8 -> 203.0.113.0/24" in str(found.wider)


def test_the_region_is_named_for_the_next_command(tmp_path: Path) -> None:
    found = import_config(changed(Region="us-east-2"), tmp_path)
    assert "\nNext: AWS_REGION=us-east-2 trainctl preflight -c flags=" in render_imported(found)
    assert "Region: no flag has it: export AWS_REGION=us-east-2, for trainctl and cdk" in found.fill


def test_the_folder_of_files_can_be_moved(tmp_path: Path) -> None:
    files = import_config(SAMPLES["directory"].config, tmp_path / "a").files
    (tmp_path / "a").rename(tmp_path / "b")
    settings = read_settings({"flags": str(tmp_path / "b" / files[0].name)})
    for name, file in {"queues": settings.queues, "directory": settings.directory}.items():
        assert (ROOT / str(file)).samefile(tmp_path / "b" / f"{name}.yaml")


def test_open_values_and_profiles_have_to_be_completed(imported: Imports) -> None:
    sample = imported("template")
    said, flags = "\n".join(sample.found.fill), sample.found.flags
    names = "PUBLIC_SUBNET PRIVATE_SUBNET INSTANCE NODES RESERVATION VOLUME FILE_SYSTEM"
    assert [name for name in names.split() if f"${{{name}}} is no" not in said] == []
    overrides = yaml.safe_load((sample.folder / "overrides.yaml").read_text())
    (policy,) = overrides["HeadNode"]["Iam"]["AdditionalIamPolicies"]
    assert policy == {"Policy": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}
    assert flags["public_subnet_id"] in said
    assert flags["public_subnet_id"] != flags["private_subnet_id"]
    sample = imported("profile")
    (said,) = [each for each in sample.found.fill if "InstanceProfile" in each]
    assert sample.ours["HeadNode"]["Iam"]["InstanceRole"] in said
    assert "aws iam get-instance-profile --instance-profile-name head" in said


def test_what_another_key_replaces_is_said(imported: Imports) -> None:
    for name, words in {
        "retired-keys": ("Image.Os: alinux2 -> alinux2023", "Pools[entry].Ssh.KeyName", "Pools[spare]"),
        "older-lustre": ("PERSISTENT_1 -> PERSISTENT_2", "200 -> 250", "DriveCacheType"),
        "managed-storage": (
            "SharedStorage[efs].Name: named own-efs",
            "SharedStorage[plain].EbsSettings.DeletionPolicy: Retain",
        ),
        "several-groups": ("HeadNode.Networking.SecurityGroups: sg-0123456789abcdef0 in addition",),
        "timeouts": ("DevSettings.Timeouts.ComputeNodeBootstrapTimeout: 600 s",),
    }.items():
        said = "\n".join(sentences(imported(name).found))
        assert [each for each in words if each not in said] == []


def test_each_difference_is_shown_with_both_values(imported: Imports) -> None:
    changes = {path: (old, new) for path, old, new in imported("plain").found.changes}
    assert changes["HeadNode.Imds"] == (None, {"Secured": True})
    assert "HeadNode.Ssh.KeyName" not in changes


TEMPLATE = """
Parameters: {Port: {Type: Number, Default: 587}, Nodes: {Type: Number, Default: 4}}
Resources:
  Cluster:
    Properties:
      ClusterConfiguration:
        Region: us-east-1
        Image: {Os: ubuntu2204}
        HeadNode:
          InstanceType: m5.xlarge
          Networking: {SubnetId: !Ref Subnet}
          Ssh: {AllowedIps: !Ref Access}
          CustomActions: {OnNodeConfigured: {Script: "s3://b/a.sh", Args: [!Ref Port, !Ref Region]}}
        DevSettings: {Timeouts: {HeadNodeBootstrapTimeout: !Ref Limit}}
        Scheduling:
          Scheduler: slurm
          SlurmQueues:
          - Name: q
            Networking: {SubnetIds: [!ImportValue private]}
            Iam: {InstanceRole: !GetAtt Role.Arn}
            ComputeResources:
            - Efa: {Enabled: !If [HasFsx, true, false]}
              InstanceType: p5.48xlarge
              MaxCount: !Ref Nodes
              Name: c
        SharedStorage:
        - Fn::If: [HasFsx, {Name: f, MountDir: /fsx, StorageType: FsxLustre,
                   FsxLustreSettings: {FileSystemId: !Ref FileSystem}}, !Ref AWS::NoValue]
        - !If [IsMore, !Ref AWS::NoValue, {Name: e, MountDir: /apps, StorageType: Ebs}]
"""


def test_conditions_and_open_values_are_completed(tmp_path: Path) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(TEMPLATE)
    found = import_config(read_config_file(file), tmp_path / "out")
    said = {each.partition(": ")[0] for each in found.fill}
    resource = "Scheduling.SlurmQueues[q].ComputeResources[c]"
    expected = {
        *("HeadNode.Networking.SubnetId", "HeadNode.Ssh.AllowedIps", "SharedStorage[0]", "SharedStorage[1]"),
        *("HeadNode.CustomActions.OnNodeConfigured.Args[1]", f"{resource}.Efa.Enabled"),
        *("DevSettings.Timeouts.HeadNodeBootstrapTimeout", "Scheduling.SlurmQueues[q].Iam.InstanceRole"),
    }
    assert (found.lost, found.problem, expected - said) == ((), "", set())
    overrides = yaml.safe_load((tmp_path / "out" / "overrides.yaml").read_text())
    assert overrides["HeadNode"]["CustomActions"]["OnNodeConfigured"]["Args"] == ["587", "${Region}"]
    assert [each["Name"] for each in overrides["SharedStorage"]] == ["e"]
    assert found.flags["fsx_id"].startswith("fs-0")


def test_what_aws_refuses_is_replaced(tmp_path: Path) -> None:
    lustre = {"Name": "fsx", "StorageType": "FsxLustre", "MountDir": "/fsx"}
    size = {"StorageCapacity": 10240, "DeploymentType": "SCRATCH_2"}
    theirs = merge(SAMPLES["block"].config, {"SharedStorage": [{**lustre, "FsxLustreSettings": size}]})
    theirs["Scheduling"]["SlurmQueues"][0]["Networking"]["PlacementGroup"] = {"Enabled": True}
    found = import_config(theirs, tmp_path)
    assert (found.lost, found.problem, found.flags["fsx_gib"]) == ((), "", "12000")
    assert "a Capacity Block takes no placement group" in str(found.replaced)


def test_settings_that_the_app_keeps_are_lost(tmp_path: Path) -> None:
    words = "bf_continue,BF_INTERVAL=60,max_rpc_cnt=150"
    lines = [{"KillWait": 5, "SlurmdTimeout": 600}, {"PrologFlags": "x11"}, {"SchedulerParameters": words}]
    found = import_config(changed(Scheduling={"SlurmSettings": {"CustomSlurmSettings": lines}}), tmp_path)
    path = "Scheduling.SlurmSettings.CustomSlurmSettings"
    lost = [f"{path}[KillWait]: 5", f"{path}[SchedulerParameters]: BF_INTERVAL=60"]
    assert [each.partition(": the app sets")[0] for each in found.lost] == lost
    overrides = yaml.safe_load((tmp_path / "overrides.yaml").read_text())
    left = {"SchedulerParameters": "bf_continue,max_rpc_cnt=150"}
    assert value_at(overrides, path) == [{"SlurmdTimeout": 600}, {"PrologFlags": "x11"}, left]


def _template(folder: Path, config: Any) -> Path:
    file = folder / "template.json"
    resource = {"Type": "Custom::Cluster", "Properties": {"ClusterConfiguration": config}}
    file.write_text(json.dumps({"Resources": {"Cluster": resource, "Other": {"Type": "AWS::S3::Bucket"}}}))
    return file


def test_configs_in_templates_are_mappings_or_text(tmp_path: Path) -> None:
    text = json.dumps(PLAIN)
    for content in (PLAIN, text):
        assert read_config_file(_template(tmp_path, content)) == PLAIN
    head, tail = text.split("us-east-1")
    joined = {"Fn::Join": ["", [head, {"Ref": "AWS::Region"}, tail]]}
    assert read_config_file(_template(tmp_path, joined))["Region"] == "${AWS::Region}"
    short = tmp_path / "short.yaml"
    short.write_text(
        "Resources:\n  Cluster:\n    Properties:\n      ClusterConfiguration:\n"
        "        HeadNode: {Networking: {SubnetId: !Ref Subnet}}\n        Scheduling: {Scheduler: slurm}\n"
    )
    assert read_config_file(short)["HeadNode"]["Networking"]["SubnetId"] == {"Ref": "Subnet"}


MESSAGES = r"""
 // the file is empty
HeadNode: {} // it is a part of a config: HeadNode, without Scheduling.SlurmQueues
HeadNode: {}\nScheduling: {SlurmSettings: {}} // it is a part of a config: HeadNode, Scheduling, with
[global]\ncluster_template = x\n[cluster x]\nscheduler = slurm // type:   pcluster3-config-converter
HeadNode: {}\nScheduling: {Scheduler: awsbatch} // awsbatch: jobs, scripts and checks here
HeadNode: 5\nScheduling: {Scheduler: slurm} // HeadNode: expected keys with values, found a whole
HeadNode:\nScheduling: {Scheduler: slurm} // HeadNode: required, but missing
HeadNode: {}\nScheduling: [slurm] // Scheduling: expected keys with values, found a list
HeadNode: {Networking: x}\nScheduling: {} // HeadNode.Networking: expected keys with values
HeadNode: {}\nScheduling: {}\nTags: 5 // Tags: expected a list, found a whole number (5)
HeadNode: {}\nScheduling: {SlurmQueues: [{ComputeResources: [7]}]} // SlurmQueues[0].ComputeResources[0]: exp
HeadNode: {}\nScheduling: {}\nSharedStorage: [{EfsSettings: 5}] // SharedStorage[0].EfsSettings: expected keys
HeadNode: {Networking: {SecurityGroups: [1]}}\nScheduling: {} // SecurityGroups[0]: expected text, found
{"Resources": {"B": {"Type": "AWS::S3::Bucket"}}} // no HeadNode and Scheduling
HeadNode: {}\nScheduling: {Scheduler: slurm}\nScheduling: {} // line 3: the key Scheduling is on line 2
Resources: {C: {Properties: {ClusterConfiguration: "HeadNode: {}LINE"}}} // 2: the key HeadNode is on line 1
"""


@pytest.mark.parametrize("line", MESSAGES.strip("\n").splitlines())
def test_a_file_without_a_config_is_one_message(line: str, tmp_path: Path, imports: Call) -> None:
    text, words = line.split(" // ")
    file = tmp_path / "file.yaml"
    file.write_text(text.replace(r"\n", "\n").replace("LINE", r"\nHeadNode: {}"))
    code, _, said = imports(str(file))
    assert (code, words in said) == (2, True), said
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(tmp_path: Path, imports: Call) -> None:
    file = written("one-group", tmp_path)
    code, said, _ = imports(file)
    assert (code, "\nLost: nothing. Keys" in said) == (0, True)
    code, _, said = imports(file)
    assert (code, "another folder" in said) == (2, True)
    (tmp_path / "file").touch()
    for place in ("file", "file/folder"):
        code, _, said = imports(written("plain", tmp_path), "--out", str(tmp_path / place))
        assert (code, "cannot be written" in said) == (2, True)


def test_the_exit_code_says_whether_something_is_lost(tmp_path: Path, imports: Call) -> None:
    code, output, _ = imports(written("scratch-lustre", tmp_path), "--json")
    said = json.loads(output)
    assert (code, said["complete"]) == (1, False)
    assert said["import"]["lost"][0].startswith("SharedStorage[fsx].FsxLustreSettings.ImportPath")


def test_a_running_cluster_is_read_from_its_bucket(imports: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"ResourcesS3Bucket": "b", "ArtifactS3RootDirectory": "d", "ConfigVersion": "v"}
    given = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
    body = {"Body": io.BytesIO(yaml.safe_dump(PLAIN).encode())}
    answers = stack_answers({"mine": FakeStack(members={"Parameters": given})})
    account = Account(answers | {"GetObject": body})
    monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
    assert imports("--cluster", "mine")[0] == 0
    code, _, said = imports("--cluster", "other")
    assert (code, "no cluster other in this region" in said) == (1, True)


@pytest.mark.slow
def test_the_library_takes_what_the_files_render(imported: Imports) -> None:
    refused = dict(zip(SAMPLES, refusals([imported(name).ours for name in SAMPLES]), strict=True))
    assert {name: said for name, said in refused.items() if said} == {}
