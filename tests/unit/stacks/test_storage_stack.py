"""StorageStack: data is encrypted, private, reached by nodes alone, and kept."""

from typing import Any

from tests.unit.stacks.app import OWN_STORAGE, App

STACK = "StorageStack"
EXPORTS = {f"TrainingCluster-Storage:{name}" for name in ("BucketName", "FileSystemId", "EfsId")}


def test_all_but_the_guard_is_kept(default: App) -> None:
    """A file system without its mount target, or without its group's rules, would be out of reach."""
    # Kept, unless the very stack that creates it fails: then it is empty.
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    resources = default.templates[STACK]["Resources"].items()
    found = {id_: {policy: each.get(policy) for policy in kept} for id_, each in resources}
    of_storage = {id_: each for id_, each in found.items() if not id_.startswith("Guard")}
    assert of_storage == dict.fromkeys(of_storage, kept)
    types = {each["Type"] for id_, each in resources if id_ in of_storage}
    for type_ in ("S3::BucketPolicy", "FSx::FileSystem", "EFS::MountTarget", "EC2::SecurityGroupIngress"):
        assert f"AWS::{type_}" in types


def test_no_rule_deletes_a_current_object(default: App) -> None:
    bucket = default.only("AWS::S3::Bucket")
    rules = {rule["Id"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert all(rule["Status"] == "Enabled" and "Prefix" not in rule for rule in rules.values())
    assert not any({"ExpirationInDays", "ExpirationDate"} & rule.keys() for rule in rules.values())
    assert rules["OldVersions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 90}
    assert rules["OldVersions"]["ExpiredObjectDeleteMarker"] is True
    assert rules["BrokenUploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}


def _rules_of(app: App, group: str, kind: str = "Ingress") -> list[Any]:
    rules = app.resources(f"AWS::EC2::SecurityGroup{kind}", STACK).values()
    return [rule for rule in rules if f"Storage{group}SecurityGroup" in str(rule["GroupId"])]


def test_lustre_answers_nodes_and_itself_on_its_ports(default: App) -> None:
    """FSx wants its port open to the group itself, in and out; one egress rule takes the default away."""
    rules = _rules_of(default, "Lustre")
    from_nodes = {
        (rule["FromPort"], rule["ToPort"])
        for rule in rules
        if "TrainingCluster-Network" in str(rule["SourceSecurityGroupId"])
    }
    assert from_nodes == {(988, 988), (1018, 1023)}
    assert all(988 <= rule["FromPort"] <= rule["ToPort"] <= 1023 for rule in rules)
    for kind, other in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        own = [rule for rule in _rules_of(default, "Lustre", kind) if rule.get(other) == rule["GroupId"]]
        assert any(rule["FromPort"] <= 988 <= rule["ToPort"] for rule in own), kind


def test_efs_answers_nodes_over_tls_alone(default: App) -> None:
    (rule,) = _rules_of(default, "Efs")
    assert (rule["FromPort"], rule["ToPort"]) == (2049, 2049)
    assert "TrainingCluster-Network" in str(rule["SourceSecurityGroupId"])
    system = default.only("AWS::EFS::FileSystem")
    assert system["Encrypted"] is True
    (statement,) = system["FileSystemPolicy"]["Statement"]
    assert statement["Condition"]["Bool"]["aws:SecureTransport"] == "true"


def test_what_one_side_of_a_link_deletes_stays(default: App) -> None:
    links = default.resources("AWS::FSx::DataRepositoryAssociation").values()
    assert {link["FileSystemPath"]: set(link["S3"]) for link in links} == {
        "/datasets": {"AutoImportPolicy"},
        "/checkpoints": {"AutoExportPolicy"},
    }
    assert all("DELETED" not in str(link["S3"]) for link in links)


def test_existing_storage_has_the_same_exports(default: App, brought: App) -> None:
    """CloudFormation refuses to change an export in use: no other storage slips under a living cluster."""
    ours, theirs = (app.only("Custom::Guard", STACK)["Values"] for app in (default, brought))
    assert {"vpc_id", "private_subnet_id", "security_group_id", "fsx_gib", "efs_mibps"} < ours.keys()
    assert theirs.keys() == OWN_STORAGE.keys()
    template = brought.templates[STACK]
    types = {each["Type"] for each in template["Resources"].values()}
    assert not [each for each in types if each.startswith(("AWS::S3::", "AWS::FSx::", "AWS::EFS::"))]
    values = {name: output["Value"] for name, output in template["Outputs"].items()}
    assert values == dict(zip(("BucketName", "FileSystemId", "EfsId"), OWN_STORAGE.values(), strict=True))
    for app in (default, brought):
        outputs = app.templates[STACK]["Outputs"].values()
        assert {output["Export"]["Name"] for output in outputs} == EXPORTS
        cluster = str(app.only("Custom::TrainingCluster"))
        assert all(f"{{'Fn::ImportValue': '{export}'}}" in cluster for export in EXPORTS)
        assert not any(f"'{id_}'" in cluster for id_ in OWN_STORAGE.values() if id_.startswith("fs-"))
