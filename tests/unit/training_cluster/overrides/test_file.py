"""The file of overrides: what is read, and the one message for each mistake."""

from pathlib import Path

import pytest

from tests.unit.training_cluster.overrides.conftest import Write
from training_cluster.overrides.file import read_overrides, upload_key
from training_cluster.pcluster.check import check_cluster_config, config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

_POLICIES = [f"{{Policy: 'arn:aws:iam::123456789012:policy/{number}'}}" for number in range(9)]
MISTAKES = {
    "a key twice": ("HeadNode:\n  Imds: 1\n  Imds: 2", "line 3: the key Imds is on line 2 already"),
    "nothing": ("", "the file is empty"),
    "a list": ("- HeadNode", "no keys of a cluster config"),
    "a loop": ("HeadNode: &here [*here]", "line 1: a value that contains itself"),
    "a program": ("!!python/object:os.system x", "line 1: could not determine a constructor"),
    "no such script": (
        "HeadNode: {CustomActions: {OnNodeStart: {Script: 'file://gone.sh'}}}",
        "file://gone.sh: there is no file",
    ),
    "a typo": ("HeadNod: {Imds: {Secured: true}}", 'HeadNod: no such key. Did you mean "HeadNode"?'),
    "a queue that is not there": (
        "Scheduling: {SlurmQueues: [{Name: gpuu, HealthChecks: {Gpu: {Enabled: true}}}]}",
        'Scheduling.SlurmQueues[gpuu]: this cluster has no item of this name. Did you mean "gpu"?',
    ),
    "a time limit below ours": (
        "DevSettings: {Timeouts: {HeadNodeBootstrapTimeout: 600}}",
        "DevSettings.Timeouts.HeadNodeBootstrapTimeout: 600: our own steps may take 2700 s",
    ),
    "a policy of deletion that is none": (
        "SharedStorage: [{Name: x, MountDir: /x, StorageType: Ebs, EbsSettings: {DeletionPolicy: Keep}}]",
        '"Keep" is not allowed. Allowed: Delete, Retain, Snapshot',
    ),
    "more login nodes without any": (
        "LoginNodes: {Pools: [{Name: more, Count: 1}]}",
        "LoginNodes.Pools: the first pool comes from -c login_nodes=1",
    ),
    "an instance profile": (
        "HeadNode: {Iam: {InstanceProfile: 'arn:aws:iam::123456789012:instance-profile/x'}}",
        "HeadNode.Iam.InstanceProfile: give its role, as InstanceRole",
    ),
    "settings of another type of storage": (
        "SharedStorage: [{Name: a, MountDir: /a, StorageType: Ebs, EfsSettings: {Encrypted: true}}]",
        "SharedStorage[a]: EfsSettings is not of StorageType Ebs",
    ),
    "storage within ours": (
        "SharedStorage: [{Name: more, MountDir: /fsx/more, StorageType: Ebs, "
        "EbsSettings: {VolumeId: vol-0123456789abcdef0}}]",
        "/fsx/more is within /fsx",
    ),
    "a role and more rights": (
        "HeadNode: {Iam: {InstanceRole: 'arn:aws:iam::123456789012:role/x', S3Access: [{BucketName: b}]}}",
        "HeadNode: Iam.S3Access: not added to your own role",
    ),
    "more policies than a role takes": (
        f"HeadNode: {{Iam: {{AdditionalIamPolicies: [{', '.join(_POLICIES)}]}}}}",
        "HeadNode: Iam.AdditionalIamPolicies: 10 policies, the app's included; a role takes 9",
    ),
    "a wildcard for policies": (
        "HeadNode: {Iam: {AdditionalIamPolicies: [{Policy: 'arn:aws:iam::*:policy/*'}]}}",
        'Iam.AdditionalIamPolicies: "arn:aws:iam::*:policy/*" is not the ARN of a policy',
    ),
    "a tag that IAM refuses": (
        "Tags: [{Key: cost, Value: 'R&D'}]",
        'Tags: "cost=R&D": a tag takes letters, digits, spaces and _.:/=+-@, no &',
    ),
    "a typo in a setting of slurm.conf": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{SlurmdTimout: 600}]}}",
        "Scheduling.SlurmSettings.CustomSlurmSettings.SlurmdTimout: Slurm 25.11 has no such key in slurm.conf"
        ', and slurmctld does not start with it. Did you mean "SlurmdTimeout"?',
    ),
    "a typo in a setting of a partition": (
        "Scheduling: {SlurmQueues: [{Name: gpu, CustomSlurmSettings: {MaxTimes: '1:0:0'}}]}",
        "Scheduling.SlurmQueues[gpu].CustomSlurmSettings.MaxTimes: Slurm 25.11 has no such key in a line of "
        'PartitionName, and slurmctld does not start with it. Did you mean "MaxTime"?',
    ),
    "no setting of slurm.conf": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [SlurmdTimeout]}}",
        "expected keys with values, found text",
    ),
    "a number as a setting of slurm.conf": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{1: 2}]}}",
        "Scheduling.SlurmSettings.CustomSlurmSettings.1: Slurm 25.11 has no such key",
    ),
    "a topology without its file": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{topologyplugin: topology/Tree}]}}",
        "topologyplugin: topology/tree does not start without /opt/slurm/etc/topology.conf\n"
        "    type: HeadNode.CustomActions.OnNodeStart with a script that writes this file; for an",
    ),
    "a number that is none": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{SlurmdTimeout: ten}]}}",
        "Scheduling.SlurmSettings.CustomSlurmSettings.SlurmdTimeout: ten is no value for Slurm 25.11\n"
        "    allowed: a whole number from 0 to 65535, or INFINITE",
    ),
    "nodes of one's own with a wrong number": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{NodeName: 'own[1-2]', CPUs: 70000}]}}",
        "CPUs: 70000 is no value for Slurm 25.11",
    ),
    "a text that YAML reads as false": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{EnforcePartLimits: NO}]}}",
        "EnforcePartLimits: False is no value for Slurm 25.11\n    allowed: text without spaces",
    ),
    "a removed setting": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{SallocDefaultCommand: x}]}}",
        "allowed: none: Slurm has removed this setting",
    ),
    "a setting of ParallelCluster's": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{Prolog: /x, SlurmdTimeout: 9}]}}",
        "CustomSlurmSettings.Prolog: ParallelCluster sets it itself, and refuses it here",
    ),
    "ParallelCluster's weight of nodes": (
        "Scheduling: {SlurmQueues: [{Name: gpu, ComputeResources: "
        "[{Name: p4d, CustomSlurmSettings: {weight: 1}}]}]}",
        "ComputeResources[p4d].CustomSlurmSettings.weight: ParallelCluster sets it itself",
    ),
    "a plugin that there is not": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{SelectType: select/cons_res}]}}",
        'SelectType: Slurm 25.11 has no plugin select/cons_res. Did you mean "select/cons_tres"?',
    ),
    "a filter without its file": (
        "Scheduling: {SlurmSettings: {CustomSlurmSettings: [{JobSubmitPlugins: 'require_timelimit,lua'}]}}",
        "JobSubmitPlugins: job_submit/lua does not start without /opt/slurm/etc/job_submit.lua",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message(mistake: str, write: Write) -> None:
    content, said = MISTAKES[mistake]
    with pytest.raises(ConfigurationError) as error:
        settings = read_settings({"overrides": write(content)})
        check_cluster_config(config_before_deploy(settings), settings)
    assert said in str(error.value)


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
