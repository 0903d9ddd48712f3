"""Keys that flags set are refused in a file of overrides, with the flag."""

import re

import yaml

from training_cluster.flags.settings import Settings
from training_cluster.overrides.reserved import RESERVED, reserved_keys

OURS = {
    "Region: eu-west-1": "AWS_REGION",
    "Image: {Os: alinux2023}": "-c os",
    "Iam: {PermissionsBoundary: arn}": "-c permissions_boundary",
    "Tags: [{Key: a, Value: b}]": "-c tags",
    "DevSettings: null": "not to be removed",
    "SharedStorage: null": "not to be replaced",
    "SharedStorage: [{Name: shared, MountDir: /x}]": "-c fsx_type",
    "Scheduling: null": "not to be removed",
    "Scheduling: {Scheduler: awsbatch}": "it is slurm",
    "Scheduling: {SlurmSettings: {Database: {Uri: x}}}": "-c accounting",
    "Scheduling: {SlurmSettings: {QueueUpdateStrategy: TERMINATE}}": "on_busy=stop (TERMINATE)",
    "Scheduling: {SlurmSettings: {CustomSlurmSettings: null}}": "PrologFlags let jobs wait",
    "Scheduling: {SlurmSettings: {CustomSlurmSettingsIncludeFile: s3://x/y}}": "give its lines there",
    "DirectoryService: {DomainName: example.com, LdapTlsReqCert: never}": "-c directory=FILE",
    "HeadNode: {InstanceType: m5.large}": "-c head_node_type",
    "HeadNode: {LocalStorage: {RootVolume: {Size: 300}}}": "-c head_root_gib",
    "HeadNode: {Networking: {SubnetId: subnet-1}}": "-c vpc_id",
    "HeadNode: {Networking: {SecurityGroups: [sg-1]}}": "AdditionalSecurityGroups",
    "HeadNode: {Iam: {AdditionalIamPolicies: null}}": "-c node_policies",
    "HeadNode: {Iam: {InstanceProfile: arn}}": "as InstanceRole",
    "HeadNode: {CustomActions: {OnNodeConfigured: null}}": "yours run after them",
    "LoginNodes: {Pools: [{Name: login, Count: 3}]}": "-c login_nodes",
}
OF_A_QUEUE = {
    "CapacityType: SPOT": "-c capacity",
    "CapacityReservationTarget: {CapacityReservationId: cr-1}": "-c capacity",
    "Networking: {SubnetIds: [subnet-1]}": "-c vpc_id",
    "CustomActions: null": "yours run after them",
    "ComputeResources: []": "items with the Name",
    "ComputeResources: [{Name: p4d, InstanceType: p5.48xlarge}]": "-c family",
    "ComputeResources: [{Name: p4d, MinCount: 1}]": "-c min_nodes",
    "ComputeResources: [{Name: p4d, Efa: {Enabled: false}}]": "-c family",
    "ComputeResources: [{Name: p4d, Networking: {PlacementGroup: {Enabled: true}}}]": "-c placement_group",
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
    "HeadNode: {LocalStorage: {RootVolume: {Iops: 6000}}}",
    "HeadNode: {Networking: {AdditionalSecurityGroups: [sg-1], ElasticIp: true}}",
    "HeadNode: {Iam: {S3Access: [{BucketName: other}]}}",
    "HeadNode: {CustomActions: {OnNodeConfigured: {Script: s3://x/y.sh}}}",
    "Scheduling: {SlurmQueues: [{Name: gpu, ComputeResources: [{Name: p4d, SpotPrice: 2}]}]}",
    "SharedStorage: [{Name: apps, MountDir: /apps, StorageType: Ebs}]",
    "LoginNodes: {Pools: [{Name: login, GracetimePeriod: 5}]}",
)


def test_keys_of_flags_are_refused_with_the_flag() -> None:
    for text, flag in CASES.items():
        found = list(reserved_keys(yaml.safe_load(text)))
        assert found and all(flag in each for each in found), text


def test_other_keys_are_taken() -> None:
    assert [text for text in FREE if list(reserved_keys(yaml.safe_load(text)))] == []


def test_the_flags_that_are_named_exist() -> None:
    words = {
        word.strip(" ,:;").partition("=")[0]
        for instead in RESERVED.values()
        if instead.startswith("-c ")
        for word in re.split(r" \(|, (?:or|for|a)\b", instead.removeprefix("-c "))[0].split(",")
    }
    assert words - set(Settings.model_fields) == set()
