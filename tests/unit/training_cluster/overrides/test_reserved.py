"""Keys that flags set are refused in a file of overrides, with the flag."""

import re

import yaml

from training_cluster.flags.settings import Settings
from training_cluster.overrides.reserved import RESERVED, reserved_keys

CASES = {
    "Image: {Os: alinux2023}": "-c os",
    "Tags: null": "-c tags",
    "SharedStorage: []": "not to be replaced",
    "SharedStorage: [{Name: efs, EfsSettings: {FileSystemId: fs-1}}]": "-c fsx_type",
    "Scheduling: {SlurmSettings: {Database: {Uri: x}}}": "-c accounting",
    "Scheduling: {SlurmSettings: {CustomSlurmSettings: null}}": "PrologFlags let jobs wait",
    "Scheduling: {SlurmQueues: [{Name: gpu, Networking: {SubnetIds: [subnet-1]}}]}": "-c vpc_id",
    "Scheduling: {SlurmQueues: [{Name: gpu, ComputeResources: [{Name: p4d, MinCount: 1}]}]}": "-c min_nodes",
    "HeadNode: {LocalStorage: null}": "-c head_root_gib",
    "HeadNode: {Networking: {SecurityGroups: [sg-1]}}": "AdditionalSecurityGroups",
    "HeadNode: {Iam: {AdditionalIamPolicies: null}}": "-c node_policies",
    "HeadNode: {CustomActions: {OnNodeConfigured: null}}": "yours run after them",
    "LoginNodes: {Pools: [{Name: login}]}": "not to be removed",
}
FREE = (
    "LoginNodes: {Pools: [{Name: more, Count: 3, Networking: {SubnetIds: [subnet-1]}}]}",
    "Scheduling: {SlurmSettings: {Database: {DatabaseName: x}}}",
    "Scheduling: {SlurmQueues: [{Name: gpu, ComputeResources: [{Name: p4d, Efa: {GdrSupport: true}}]}]}",
    "SharedStorage: [{Name: efs, EfsSettings: {AccessPointId: fsap-1}}]",
    "HeadNode: {LocalStorage: {RootVolume: {Iops: 6000}}}",
    "HeadNode: {Iam: {S3Access: [{BucketName: other}]}}",
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
