"""Keys that flags set are refused in a file of overrides, with the flag."""

import re

import pytest
import yaml

from training_cluster.flags.settings import Settings
from training_cluster.overrides.reserved import RESERVED, reserved_keys

OURS = {
    "Region: eu-west-1": "AWS_REGION",
    "Image: {Os: alinux2023}": "-c os",
    "Image: {CustomAmi: ami-1}": "HeadNode.Image.CustomAmi",
    "Iam: {PermissionsBoundary: arn}": "-c permissions_boundary",
    "Tags: [{Key: a, Value: b}]": "-c tags",
    "Tags: null": "-c tags",
    "DevSettings: null": "not to be removed",
    "SharedStorage: null": "not to be replaced",
    "SharedStorage: []": "not to be replaced",
    "SharedStorage: [{Name: shared, MountDir: /x}]": "-c fsx_type",
    "SharedStorage: [{Name: efs, EfsSettings: {FileSystemId: fs-1}}]": "-c fsx_type",
    "Scheduling: null": "not to be removed",
    "Scheduling: {Scheduler: awsbatch}": "it is slurm",
    "Scheduling: {SlurmSettings: {Database: {Uri: x}}}": "-c accounting",
    "Scheduling: {SlurmQueues: null}": "items with the Name",
    "Scheduling: {SlurmSettings: {QueueUpdateStrategy: TERMINATE}}": "on_busy=stop (TERMINATE)",
    "Scheduling: {SlurmSettings: null}": "not to be removed",
    "Scheduling: {SlurmSettings: {CustomSlurmSettings: null}}": "PrologFlags let jobs wait",
    "Scheduling: {SlurmSettings: {CustomSlurmSettingsIncludeFile: s3://x/y}}": "give its lines there",
    "DirectoryService: {DomainName: example.com, LdapTlsReqCert: never}": "-c directory=FILE",
    "DirectoryService: null": "-c directory=FILE",
    "HeadNode: null": "not to be removed",
    "HeadNode: {InstanceType: m5.large}": "-c head_node_type",
    "HeadNode: {LocalStorage: {RootVolume: {Size: 300}}}": "-c head_root_gib",
    "HeadNode: {LocalStorage: null}": "-c head_root_gib",
    "HeadNode: {Ssh: {KeyName: k}}": "-c key_name",
    "HeadNode: {Networking: {SubnetId: subnet-1}}": "-c vpc_id",
    "HeadNode: {Networking: {SecurityGroups: [sg-1]}}": "AdditionalSecurityGroups",
    "HeadNode: {Iam: {AdditionalIamPolicies: null}}": "-c node_policies",
    "HeadNode: {Iam: {S3Access: null}}": "-c node_policies",
    "HeadNode: {Iam: {InstanceProfile: arn}}": "as InstanceRole",
    "LoginNodes: {Pools: [{Name: login}]}": "not to be removed",
    "HeadNode: {CustomActions: {OnNodeConfigured: null}}": "yours run after them",
    "LoginNodes: {Pools: [{Name: login, Count: 3}]}": "-c login_nodes",
}
OF_A_QUEUE = {
    "CapacityType: SPOT": "-c capacity",
    "CapacityReservationTarget: {CapacityReservationId: cr-1}": "-c capacity",
    "Networking: {SubnetIds: [subnet-1]}": "-c vpc_id",
    "Networking: {PlacementGroup: {Enabled: false}}": "-c placement_group",
    "Networking: {SecurityGroups: [sg-1]}": "AdditionalSecurityGroups",
    "Image: {CustomAmi: ami-1}": "-c image",
    "Iam: {AdditionalIamPolicies: null}": "-c node_policies",
    "CustomActions: null": "yours run after them",
    "ComputeResources: []": "items with the Name",
    "ComputeResources: [{Name: p4d, InstanceType: p5.48xlarge}]": "-c family",
    "ComputeResources: [{Name: p4d, Instances: [{InstanceType: p5.48xlarge}]}]": "-c family",
    "ComputeResources: [{Name: p4d, MinCount: 1}]": "-c min_nodes",
    "ComputeResources: [{Name: p4d, MaxCount: 1}]": "-c nodes",
    "ComputeResources: [{Name: p4d, Efa: {Enabled: false}}]": "-c family",
    "ComputeResources: [{Name: p4d, Networking: {PlacementGroup: {Enabled: true}}}]": "-c placement_group",
    "ComputeResources: [{Name: p4d, Networking: null}]": "-c placement_group",
}
CASES = OURS | {
    "Scheduling: {SlurmQueues: [{Name: gpu, " + key + "}]}": flag for key, flag in OF_A_QUEUE.items()
}
FREE = (
    "HeadNode: {Iam: {InstanceRole: arn}}",
    "LoginNodes: {Pools: [{Name: more, Count: 3, Networking: {SubnetIds: [subnet-1]}}]}",
    "Scheduling: {SlurmSettings: {Database: {DatabaseName: x}}}",
    "Scheduling: {SlurmQueues: [{Name: gpu, ComputeResources: [{Name: p4d, Efa: {GdrSupport: true}}]}]}",
    "SharedStorage: [{Name: efs, EfsSettings: {AccessPointId: fsap-1}}]",
    "DevSettings: {Timeouts: {HeadNodeBootstrapTimeout: 9}}",
    "Imds: {ImdsSupport: v2.0}",
    "HeadNode: {Image: {CustomAmi: ami-1}}",
    "HeadNode: {LocalStorage: {RootVolume: {Iops: 6000}}}",
    "HeadNode: {Networking: {AdditionalSecurityGroups: [sg-1], ElasticIp: true}}",
    "HeadNode: {Iam: {S3Access: [{BucketName: other}]}}",
    "HeadNode: {Iam: {AdditionalIamPolicies: [{Policy: arn}]}}",
    "HeadNode: {CustomActions: {OnNodeConfigured: {Script: s3://x/y.sh}}}",
    "HeadNode: {SharedStorageType: Efs, Dcv: {Enabled: true}}",
    "Scheduling: {SlurmSettings: {ScaledownIdletime: 5, Dns: {DisableManagedDns: true}}}",
    "Scheduling: {SlurmQueues: [{Name: gpu, ComputeResources: [{Name: p4d, SpotPrice: 2}]}]}",
    "SharedStorage: [{Name: apps, MountDir: /apps, StorageType: Ebs}]",
    "LoginNodes: {Pools: [{Name: login, GracetimePeriod: 5}]}",
    "Monitoring: {Logs: {CloudWatch: {Enabled: false}}}",
    "Monitoring: null",
    "AdditionalPackages: {IntelSoftware: {IntelHpcPlatform: true}}",
)


@pytest.mark.parametrize(("text", "flag"), CASES.items())
def test_a_key_that_a_flag_sets_is_refused_with_the_flag(text: str, flag: str) -> None:
    found = list(reserved_keys(yaml.safe_load(text)))
    assert found
    assert all(flag in each for each in found)


@pytest.mark.parametrize("text", FREE)
def test_other_keys_are_taken(text: str) -> None:
    assert list(reserved_keys(yaml.safe_load(text))) == []


def test_the_flags_that_are_named_exist() -> None:
    words = {
        word.strip(" ,:;").partition("=")[0]
        for instead in RESERVED.values()
        if instead.startswith("-c ")
        for word in re.split(r" \(|, (?:or|for|a)\b", instead.removeprefix("-c "))[0].split(",")
    }
    assert words - set(Settings.model_fields) == set()
