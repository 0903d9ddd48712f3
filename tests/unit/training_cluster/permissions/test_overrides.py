"""What keys of overrides add to the provider's policy, and that a config without them adds nothing."""

from pathlib import Path

import pytest
import yaml
from aws_cdk.aws_iam import PolicyStatement

from training_cluster.pcluster.check import config_before_deploy
from training_cluster.permissions.overrides import VPC_ACCESS, attachable, grants
from training_cluster.permissions.scopes import Target, scopes
from training_cluster.rules.context import read_settings

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:x-AbCdEf"
ROLE = "arn:aws:iam::123456789012:role/mine"
CASES = f"""
NEW FsxLustre, FsxLustreSettings: {{ImportPath: 's3://b/x'}}}}] // BucketsOfLustre s3:PutObject
NEW FsxLustre, FsxLustreSettings: {{BackupId: BACKUP}}}}] // OwnFileSystems fsx:DescribeBackups
NEW FsxOntap, FsxOntapSettings: {{VolumeId: FSVOL}}}}] // OwnFileSystems fsx:DescribeStorageVirtualMachines
NEW FileCache, FileCacheSettings: {{FileCacheId: fc-01234567}}}}] // OwnFileSystems fsx:DescribeFileCaches
NEW Ebs, EbsSettings: {{KmsKeyId: k}}}}] // OwnKeys kms:CreateGrant
Scheduling: {{SlurmSettings: {{MungeKeySecretArn: '{SECRET}'}}}} // OwnMungeKey secretsmanager:GetSecretValue
Iam: {{Roles: {{LambdaFunctionsRole: '{ROLE}'}}}} // PassOwnRoles iam:PassRole
HeadNode: {{Iam: {{InstanceRole: '{ROLE}'}}}} // PassOwnRoles iam:PassRole
CustomS3Bucket: mine // OwnLibraryBucket s3:PutBucketPolicy
"""


def granted(overrides: str, folder: Path, **flags: str) -> list[PolicyStatement]:
    file = folder / "mine.yaml"
    file.write_text(overrides)
    assert yaml.safe_load(overrides)
    return list(grants(config_before_deploy(read_settings({"overrides": str(file), **flags}))))


@pytest.mark.parametrize("line", CASES.strip().splitlines())
def test_a_key_brings_its_statement(line: str, tmp_path: Path) -> None:
    text, expected = line.split(" // ")
    text = text.replace("NEW", "SharedStorage: [{Name: z, MountDir: /z, StorageType:")
    text = text.replace("BACKUP", "backup-0123456789abcdef0").replace("FSVOL", "fsvol-0123456789abcdef0")
    sid, action = expected.split()
    found = {each.sid: each.actions for each in granted(text, tmp_path)}
    assert action in found[sid]


def test_statements_are_of_what_keys_name(tmp_path: Path) -> None:
    (one,) = granted("CustomS3Bucket: mine", tmp_path)
    assert [each.partition(":s3:::")[2] for each in one.resources] == ["mine", "mine/*"]
    (one,) = granted(f"HeadNode: {{Iam: {{InstanceRole: '{ROLE}'}}}}", tmp_path)
    assert one.resources == [ROLE]
    secret = {"accounting": "db.example.com", "accounting_secret": SECRET, "login_nodes": "1"}
    for flags in ({}, {"efs_id": "fs-0123456789abcdef0", "home": "efs"}, secret):
        assert list(grants(config_before_deploy(read_settings(flags)))) == []
    assert granted("Monitoring: {Dashboards: {CloudWatch: {Enabled: true}}}", tmp_path) == []
    assert attachable({"DeploymentSettings": {"LambdaFunctionsVpcConfig": {}}}) == (VPC_ACCESS,)
    mine = "arn:aws:iam::123456789012:policy/mine"
    assert mine in attachable({"HeadNode": {"Iam": {"AdditionalIamPolicies": [{"Policy": mine}]}}})
    assert attachable({}) == ()
    target = Target(cluster_name="training", scripts_bucket_arn="arn:aws:s3:::b", iam_prefix="/team/hpc-")
    roles = next(each for each in scopes(target) if each.name == "Roles")
    assert any(each.endswith(":role/team/hpc-*") for each in roles.resources)
