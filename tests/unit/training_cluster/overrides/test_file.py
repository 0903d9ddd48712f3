"""The file of overrides: what is read, and the one message for each mistake."""

from pathlib import Path

import pytest

from tests.unit.sentences import assert_sentences
from tests.unit.training_cluster.conftest import Write
from training_cluster.overrides.file import read_overrides, upload_key
from training_cluster.pcluster.check import checked_config
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

- HeadNode
HeadNode: &here [*here]
!!python/object:os.system x
HeadNode: {CustomActions: {OnNodeStart: {Script: 'file://gone.sh'}}}
HeadNod: {Imds: {Secured: true}}
QUEUES: [{Name: gpuu, HealthChecks: {Gpu: {Enabled: true}}}]}
DevSettings: {Timeouts: {HeadNodeBootstrapTimeout: 600}}
SharedStorage: [{Name: x, MountDir: /x, StorageType: Ebs, EbsSettings: {DeletionPolicy: Keep}}]
LoginNodes: {Pools: [{Name: more, Count: 1}]}
HeadNode: {Iam: {InstanceProfile: 'arn:aws:iam::123456789012:instance-profile/x'}}
SharedStorage: [{Name: a, MountDir: /a, StorageType: Ebs, EfsSettings: {Encrypted: true}}]
SharedStorage: [{Name: m, MountDir: /fsx/more, StorageType: Ebs, EbsSettings: {VolumeId: VOLUME}}]
HeadNode: {Iam: {InstanceRole: 'arn:aws:iam::123456789012:role/x', S3Access: [{BucketName: b}]}}
HeadNode: {Iam: {AdditionalIamPolicies: [POLICIES]}}
HeadNode: {Iam: {AdditionalIamPolicies: [{Policy: 'arn:aws:iam::*:policy/*'}]}}
Tags: [{Key: cost, Value: 'R&D'}]
Tags: [{Key: team, Value: ''}]
SETTINGS: [{SlurmdTimout: 600}]}}
QUEUES: [{Name: gpu, CustomSlurmSettings: {MaxTimes: '1:0:0'}}]}
SETTINGS: [SlurmdTimeout]}}
Scheduling: x
HeadNode: {InstanceType: {x: y}}
QUEUES: {Name: gpu}}
SETTINGS: [{1: 2}]}}
SETTINGS: [{topologyplugin: topology/Tree}]}}
SETTINGS: [{SlurmdTimeout: ten}]}}
SETTINGS: [{NodeName: 'own[1-2]', CPUs: 70000}]}}
SETTINGS: [{EnforcePartLimits: NO}]}}
SETTINGS: [{SallocDefaultCommand: x}]}}
SETTINGS: [{Prolog: /x, SlurmdTimeout: 9}]}}
QUEUES: [{Name: gpu, ComputeResources: [{Name: p4d, CustomSlurmSettings: {weight: 1}}]}]}
SETTINGS: [{PrologFlags: Contains}]}}
SETTINGS: [{AccountingStorageEnforce: 'limits, safe'}]}}
SETTINGS: [{accountingstorageenforce: 'limits,save'}]}}
QUEUES: [{Name: gpu, CustomSlurmSettings: {PreemptMode: kill}}]}
SETTINGS: [{SelectType: select/cons_res}]}}
SETTINGS: [{JobSubmitPlugins: 'require_timelimit,lua'}]}}
"""
"""A file of overrides in each line."""


def test_a_mistake_is_one_message(write: Write, tmp_path: Path) -> None:
    """Before something is derived from it."""

    def read(content: str) -> None:
        for short, long in SHORT.items():
            content = content.replace(short, long)
        settings = read_settings({"overrides": write(content)})
        checked_config(settings)

    assert_sentences("overrides", MISTAKES.splitlines()[1:], read, tmp_path)
    given = write("SharedStorage: [{Name: a, MountDir: /a, StorageType: Ebs, EbsSettings: {Size: x}}]")
    with pytest.raises(ConfigurationError, match=r"EbsSettings\.Size: expected a whole number, found text"):
        checked_config(read_settings({"overrides": given}))


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
    checked_config(settings)


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
