"""StorageStack: data is encrypted, private, and kept."""

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

Synthesise = Callable[..., dict[str, Template]]


@pytest.fixture
def storage(synthesise: Synthesise) -> Template:
    return synthesise()["StorageStack"]


KEPT_TYPES = (
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::FSx::FileSystem",
    "AWS::FSx::DataRepositoryAssociation",
    "AWS::EFS::FileSystem",
    "AWS::EFS::MountTarget",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::SecurityGroupEgress",
)


@pytest.mark.parametrize("kind", KEPT_TYPES)
def test_what_holds_data_and_the_way_to_it_are_kept_on_delete_and_on_replacement(
    storage: Template, kind: str
) -> None:
    """A file system without its mount target, or without its group's rules, would be out of reach."""
    found = storage.find_resources(kind)
    assert found
    for resource in found.values():
        # Kept, unless the very stack that creates it fails: then it is empty.
        assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
        assert resource["UpdateReplacePolicy"] == "Retain"


def test_nothing_but_the_guard_goes_with_the_stack(storage: Template) -> None:
    gone = {
        name
        for name, resource in storage.to_json()["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") == "Delete"
    }
    assert gone
    assert all(name.startswith("Guard") for name in gone)


def test_no_rule_of_the_bucket_deletes_a_current_object(storage: Template) -> None:
    (bucket,) = storage.find_resources("AWS::S3::Bucket").values()
    rules = {rule["Id"]: rule for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]}
    assert all(rule["Status"] == "Enabled" and "Prefix" not in rule for rule in rules.values())
    assert not any({"ExpirationInDays", "ExpirationDate"} & rule.keys() for rule in rules.values())
    assert rules["OldVersions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 90}
    assert rules["OldVersions"]["ExpiredObjectDeleteMarker"] is True
    assert rules["BrokenUploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}


def test_the_bucket_is_private_encrypted_versioned_and_tls_only(storage: Template) -> None:
    storage.has_resource_properties(
        "AWS::S3::Bucket",
        {
            "VersioningConfiguration": {"Status": "Enabled"},
            "BucketEncryption": Match.any_value(),
            "PublicAccessBlockConfiguration": {
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
                "RestrictPublicBuckets": True,
            },
        },
    )
    insecure = {"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    storage.has_resource_properties(
        "AWS::S3::BucketPolicy",
        {"PolicyDocument": {"Statement": Match.array_with([Match.object_like(insecure)])}},
    )


def test_lustre_is_persistent_compressed_and_of_a_named_version(storage: Template) -> None:
    storage.has_resource_properties(
        "AWS::FSx::FileSystem",
        {
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": "2.15",
            "StorageCapacity": 1200,
            "LustreConfiguration": {
                "DeploymentType": "PERSISTENT_2",
                "PerUnitStorageThroughput": 250,
                "DataCompressionType": "LZ4",
            },
        },
    )


def test_lustre_is_reached_on_its_own_ports_only(storage: Template) -> None:
    rules = _rules_of(storage, "Lustre")
    from_nodes = {
        (r["FromPort"], r["ToPort"])
        for r in rules
        if "TrainingCluster-Network" in str(r["SourceSecurityGroupId"])
    }
    assert from_nodes == {(988, 988), (1018, 1023)}
    assert all(988 <= rule["FromPort"] <= rule["ToPort"] <= 1023 for rule in rules)


def _rules_of(storage: Template, group: str) -> list[dict[str, Any]]:
    rules = [rule["Properties"] for rule in storage.find_resources("AWS::EC2::SecurityGroupIngress").values()]
    return [rule for rule in rules if f"Storage{group}SecurityGroup" in str(rule["GroupId"])]


def test_efs_is_reached_over_nfs_by_the_nodes_only_and_over_tls_only(storage: Template) -> None:
    (rule,) = _rules_of(storage, "Efs")
    assert (rule["FromPort"], rule["ToPort"]) == (2049, 2049)
    assert "TrainingCluster-Network" in str(rule["SourceSecurityGroupId"])
    (system,) = storage.find_resources("AWS::EFS::FileSystem").values()
    assert system["Properties"]["Encrypted"] is True
    (statement,) = system["Properties"]["FileSystemPolicy"]["Statement"]
    assert statement["Condition"]["Bool"]["aws:SecureTransport"] == "true"


def test_nothing_that_is_deleted_on_one_side_of_a_link_is_deleted_on_the_other(storage: Template) -> None:
    links = storage.find_resources("AWS::FSx::DataRepositoryAssociation").values()
    assert {link["Properties"]["FileSystemPath"] for link in links} == {"/datasets", "/checkpoints"}
    for link in links:
        assert "DELETED" not in str(link["Properties"]["S3"])
        assert link["UpdateReplacePolicy"] == "Retain"


def test_lustre_servers_reach_each_other_in_both_directions(storage: Template) -> None:
    """FSx wants its port open to the group itself, in and out; one egress rule takes the default away."""
    for kind, other in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        rules = storage.find_resources(f"AWS::EC2::SecurityGroup{kind}").values()
        own = [r["Properties"] for r in rules if r["Properties"].get(other) == r["Properties"]["GroupId"]]
        assert any(rule["FromPort"] <= 988 <= rule["ToPort"] for rule in own), kind


def test_size_and_throughput_follow_the_flags(synthesise: Synthesise) -> None:
    template = synthesise(fsx_gib="4800", fsx_mbps_per_tib="1000")["StorageStack"]
    template.has_resource_properties(
        "AWS::FSx::FileSystem",
        {"StorageCapacity": 4800, "LustreConfiguration": {"PerUnitStorageThroughput": 1000}},
    )


GIVEN = {"bucket_name": "mine", "fsx_id": "fs-0123456789abcdef0", "efs_id": "fs-0123456789abcdef1"}


def test_storage_that_is_there_already_is_used_and_not_made_again(synthesise: Synthesise) -> None:
    storage = synthesise(**GIVEN)["StorageStack"].to_json()
    assert not {each["Type"] for each in storage["Resources"].values()} & set(KEPT_TYPES)
    values = {name: output["Value"] for name, output in storage["Outputs"].items()}
    assert values == dict(zip(("BucketName", "FileSystemId", "EfsId"), GIVEN.values(), strict=True))


def test_the_same_three_exports_stand_in_for_made_and_given_storage(synthesise: Synthesise) -> None:
    """CloudFormation refuses to change an export in use: no other storage slips under a living cluster."""
    for flags in ({}, GIVEN, {"fsx_id": GIVEN["fsx_id"]}, {"efs_id": GIVEN["efs_id"]}):
        templates = synthesise(**flags)
        outputs = templates["StorageStack"].to_json()["Outputs"]
        exports = {output["Export"]["Name"] for output in outputs.values()}
        assert exports == {
            f"TrainingCluster-Storage:{name}" for name in ("BucketName", "FileSystemId", "EfsId")
        }
        cluster = str(templates["TrainingClusterStack"].find_resources("Custom::TrainingCluster"))
        for export in exports:
            assert f"{{'Fn::ImportValue': '{export}'}}" in cluster
        assert not any(id_ in cluster for id_ in GIVEN.values())


def test_the_guard_may_only_look_at_its_own_stack(storage: Template) -> None:
    statements = [
        statement
        for role in storage.find_resources("AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    looks = [each for each in statements if "cloudformation" in str(each["Action"])]
    assert looks == [
        {
            "Action": "cloudformation:DescribeStacks",
            "Effect": "Allow",
            "Resource": {"Ref": "AWS::StackId"},
        }
    ]


def test_a_scratch_file_system_has_no_throughput_of_its_own(synthesise: Synthesise) -> None:
    (system,) = (
        synthesise(fsx_type="scratch2")["StorageStack"].find_resources("AWS::FSx::FileSystem").values()
    )
    assert system["Properties"]["LustreConfiguration"] == {
        "DeploymentType": "SCRATCH_2",
        "DataCompressionType": "LZ4",
    }
