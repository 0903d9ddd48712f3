"""The file of overrides: what is read, and the one message for each mistake."""

import re
from pathlib import Path

import pytest

from tests.unit.training_cluster.overrides.conftest import Write
from training_cluster.overrides.file import read_overrides, upload_key
from training_cluster.pcluster.check import check_cluster_config, config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

POLICIES = ", ".join(f"{{Policy: 'arn:aws:iam::123456789012:policy/{number}'}}" for number in range(9))
SHORT = {
    "SETTINGS:": "Scheduling: {SlurmSettings: {CustomSlurmSettings:",
    "QUEUES:": "Scheduling: {SlurmQueues:",
    "VOLUME": "vol-0123456789abcdef0",
    "POLICIES": POLICIES,
    r"\n": "\n",
}
MISTAKES = r"""
HeadNode:\n  Imds: 1\n  Imds: 2
    line 3: the key Imds is on line 2 already

    the file is empty
- HeadNode
    no keys of a cluster config
HeadNode: &here [*here]
    line 1: a value that contains itself
!!python/object:os.system x
    line 1: could not determine a constructor
HeadNode: {CustomActions: {OnNodeStart: {Script: 'file://gone.sh'}}}
    file://gone.sh: there is no file
HeadNod: {Imds: {Secured: true}}
    HeadNod: no such key. Did you mean "HeadNode"?
QUEUES: [{Name: gpuu, HealthChecks: {Gpu: {Enabled: true}}}]}
    Scheduling.SlurmQueues[gpuu]: this cluster has no item of this name. Did you mean "gpu"?
DevSettings: {Timeouts: {HeadNodeBootstrapTimeout: 600}}
    DevSettings.Timeouts.HeadNodeBootstrapTimeout: 600: our own steps may take 2700 s
SharedStorage: [{Name: x, MountDir: /x, StorageType: Ebs, EbsSettings: {DeletionPolicy: Keep}}]
    "Keep" is not allowed. Allowed: Delete, Retain, Snapshot
LoginNodes: {Pools: [{Name: more, Count: 1}]}
    LoginNodes.Pools: the first pool comes from -c login_nodes=1
HeadNode: {Iam: {InstanceProfile: 'arn:aws:iam::123456789012:instance-profile/x'}}
    HeadNode.Iam.InstanceProfile: give its role, as InstanceRole
SharedStorage: [{Name: a, MountDir: /a, StorageType: Ebs, EfsSettings: {Encrypted: true}}]
    SharedStorage[a]: EfsSettings is not of StorageType Ebs
SharedStorage: [{Name: m, MountDir: /fsx/more, StorageType: Ebs, EbsSettings: {VolumeId: VOLUME}}]
    /fsx/more is within /fsx
HeadNode: {Iam: {InstanceRole: 'arn:aws:iam::123456789012:role/x', S3Access: [{BucketName: b}]}}
    HeadNode: Iam.S3Access: not added to your own role
HeadNode: {Iam: {AdditionalIamPolicies: [POLICIES]}}
    HeadNode: Iam.AdditionalIamPolicies: 10 policies, the app's included; a role takes 9
HeadNode: {Iam: {AdditionalIamPolicies: [{Policy: 'arn:aws:iam::*:policy/*'}]}}
    Iam.AdditionalIamPolicies: "arn:aws:iam::*:policy/*" is not the ARN of a policy
Tags: [{Key: cost, Value: 'R&D'}]
    Tags: "cost=R&D": a tag takes letters, digits, spaces and _.:/=+-@, no &
SETTINGS: [{SlurmdTimout: 600}]}}
    CustomSlurmSettings.SlurmdTimout: Slurm 25.11 has no such key in slurm.conf //
    and slurmctld does not start with it. Did you mean "SlurmdTimeout"?
QUEUES: [{Name: gpu, CustomSlurmSettings: {MaxTimes: '1:0:0'}}]}
    Scheduling.SlurmQueues[gpu].CustomSlurmSettings.MaxTimes: Slurm 25.11 //
    PartitionName, and slurmctld does not start with it. Did you mean "MaxTime"?
SETTINGS: [SlurmdTimeout]}}
    expected keys with values, found SlurmdTimeout
Scheduling: x
    Scheduling: not to be removed or replaced
HeadNode: {InstanceType: {x: y}}
    HeadNode.InstanceType
QUEUES: {Name: gpu}}
    Scheduling.SlurmQueues: expected a list, found
SETTINGS: [{1: 2}]}}
    Scheduling.SlurmSettings.CustomSlurmSettings.1: Slurm 25.11 has no such key
SETTINGS: [{topologyplugin: topology/Tree}]}}
    topologyplugin: topology/tree does not start without /opt/slurm/etc/topology.conf //
    type: HeadNode.CustomActions.OnNodeStart with a script that writes this file; for an
SETTINGS: [{SlurmdTimeout: ten}]}}
    Scheduling.SlurmSettings.CustomSlurmSettings.SlurmdTimeout: ten is no value for Slurm 25.11 //
    allowed: a whole number from 0 to 65535, or INFINITE
SETTINGS: [{NodeName: 'own[1-2]', CPUs: 70000}]}}
    CPUs: 70000 is no value for Slurm 25.11
SETTINGS: [{EnforcePartLimits: NO}]}}
    EnforcePartLimits: False is no value for Slurm 25.11 // allowed: text without spaces
SETTINGS: [{SallocDefaultCommand: x}]}}
    allowed: none: Slurm has removed this setting
SETTINGS: [{Prolog: /x, SlurmdTimeout: 9}]}}
    CustomSlurmSettings.Prolog: ParallelCluster sets it itself, and refuses it here
QUEUES: [{Name: gpu, ComputeResources: [{Name: p4d, CustomSlurmSettings: {weight: 1}}]}]}
    ComputeResources[p4d].CustomSlurmSettings.weight: ParallelCluster sets it itself
SETTINGS: [{SelectType: select/cons_res}]}}
    SelectType: Slurm 25.11 has no plugin select/cons_res. Did you mean "select/cons_tres"?
SETTINGS: [{JobSubmitPlugins: 'require_timelimit,lua'}]}}
    JobSubmitPlugins: job_submit/lua does not start without /opt/slurm/etc/job_submit.lua
"""
"""A file of overrides in one line, and below it parts of the message."""


@pytest.mark.parametrize("mistake", re.findall(r"^(\S?.*)\n((?:    .*\n)+)", MISTAKES.lstrip(), re.MULTILINE))
def test_a_mistake_is_one_message(mistake: tuple[str, str], write: Write) -> None:
    content, said = mistake
    for short, long in SHORT.items():
        content = content.replace(short, long)
    with pytest.raises(ConfigurationError) as error:
        settings = read_settings({"overrides": write(content)})
        check_cluster_config(config_before_deploy(settings), settings)
    message = " ".join(str(error.value).split())
    assert [word for word in " ".join(said.split()).split(" // ") if word not in message] == []


@pytest.mark.parametrize("action", ["OnNodeStart", "OnNodeUpdated"])
def test_settings_that_slurm_reads_are_taken(write: Write, action: str) -> None:
    given = write(
        f"HeadNode: {{CustomActions: {{{action}: {{Script: 's3://b/topology.sh'}}}}}}\n"
        "Scheduling:\n"
        "  SlurmSettings: {CustomSlurmSettings: [{slurmdtimeout: 600}, {MailProg: '\"/bin/my mail\"'}, "
        "{PrologFlags: X11}, {TopologyPlugin: topology/tree}, {Nodes: b, NodeSet: a}]}\n"
        "  SlurmQueues: [{Name: gpu, CustomSlurmSettings: {maxtime: '1:0:0'}, ComputeResources: "
        "[{Name: p4d, CustomSlurmSettings: {MemSpecLimit: 1}}]}]\n"
    )
    settings = read_settings({"overrides": given})
    check_cluster_config(config_before_deploy(settings), settings)


def test_a_wrong_form_ends_with_a_message(write: Write) -> None:
    """Before something is derived from it."""
    given = write("SharedStorage: [{Name: a, MountDir: /a, StorageType: Ebs, EbsSettings: {Size: x}}]")
    with pytest.raises(ConfigurationError, match=r"EbsSettings\.Size: expected a whole number, found text"):
        config_before_deploy(read_settings({"overrides": given}))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    for path, said in (
        (tmp_path / "gone.yaml", "No such file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "x.yaml", "not UTF-8"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            read_settings({"overrides": str(path)})


def test_a_script_is_uploaded_by_its_content(write: Write, tmp_path: Path) -> None:
    script = tmp_path / "mount.sh"
    script.write_text("true\n")
    name = write("HeadNode: {CustomActions: {OnNodeStart: {Script: 'file://mount.sh', Args: [a]}}}")
    before = read_overrides(name).uploaded("s3://bucket/x")["HeadNode"]["CustomActions"]["OnNodeStart"]
    assert before == {"Script": f"s3://bucket/x/{upload_key(script)}", "Args": ["a"]}
    script.write_text("false\n")
    after = read_overrides(name).uploaded("s3://bucket/x")["HeadNode"]["CustomActions"]["OnNodeStart"]
    assert after["Script"] != before["Script"]
