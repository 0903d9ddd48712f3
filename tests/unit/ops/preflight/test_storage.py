"""`trainctl preflight`: own storage and key are looked at before anything is deployed."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.ops.fake_account import Refused
from tests.unit.ops.preflight.preflight_network import (
    EFS,
    FSX,
    GROUP,
    LUSTRE_RULES,
    OWN,
    VPC,
    Network,
    bad,
    findings,
    link,
    tcp,
)

Change = Callable[[Network], Any]


def test_good_storage_has_nothing_to_mend() -> None:
    own = {**OWN, "security_group_id": GROUP, "bucket_name": "mine", "fsx_id": FSX, "efs_id": EFS}
    found = findings(Network(), **own)
    assert [each for each in found if each.verdict != "ok"] == []
    assert {"Lustre: open to the nodes on 988, 1018-1023", "EFS: open to the nodes on 2049"} <= {
        each.check for each in found
    }


@pytest.mark.parametrize(
    ("change", "check", "verdict"),
    [
        (lambda n: setattr(n, "bucket", Refused("404")), "bucket_name mine", "problem"),
        (lambda n: setattr(n, "bucket", Refused("403")), "bucket_name mine", "problem"),
        (lambda n: n.bucket.update(BucketRegion="eu-west-1"), "bucket_name mine", "problem"),
        (
            lambda n: n.encryption.update(SSEAlgorithm="aws:kms", KMSMasterKeyID="arn:aws:kms:::key/1"),
            "bucket: encryption",
            "warning",
        ),
        (lambda n: setattr(n, "versioning", "Suspended"), "bucket: versioning", "warning"),
        (lambda n: n.links.clear(), "Lustre: checkpoints go to a bucket", "warning"),
        (
            lambda n: setattr(n, "links", [link("/checkpoints", "AutoImportPolicy"), link("/other")]),
            "Lustre: checkpoints go to a bucket",
            "warning",
        ),
        (lambda n: setattr(n, "lustre", None), f"fsx_id {FSX}", "problem"),
        (lambda n: n.lustre.update(FileSystemType="WINDOWS"), f"fsx_id {FSX}", "problem"),
        (lambda n: n.lustre.update(Lifecycle="FAILED"), f"fsx_id {FSX}", "problem"),
        (lambda n: n.lustre.update(FileSystemTypeVersion="2.10"), "Lustre: version", "warning"),
        (
            lambda n: n.lustre.update(VpcId="vpc-0ffffffffffffffff"),
            "Lustre: in the nodes' VPC",
            "problem",
        ),
        (
            lambda n: n.lustre_rules.update(out=[]),
            "Lustre: open to the nodes on 988, 1018-1023",
            "problem",
        ),
        (
            lambda n: n.lustre_rules.update({"in": LUSTRE_RULES[:1]}),
            "Lustre: open to the nodes on 988, 1018-1023",
            "problem",
        ),
        (lambda n: setattr(n, "efs", None), f"efs_id {EFS}", "problem"),
        (lambda n: n.efs[0].update(zone="use1-az1"), "EFS: mount target in use1-az4", "problem"),
        (lambda n: n.efs_rules.update({"in": []}), "EFS: open to the nodes on 2049", "problem"),
    ],
)
def test_storage_that_the_nodes_cannot_use_is_named(change: Change, check: str, verdict: str) -> None:
    network = Network()
    change(network)
    own = {**OWN, "security_group_id": GROUP, "bucket_name": "mine", "fsx_id": FSX, "efs_id": EFS}
    (found,) = bad(network, **own)
    assert (found.check, found.verdict) == (check, verdict)
    assert found.mend


@pytest.mark.parametrize("default", [{}, {"KMSMasterKeyID": "arn:aws:kms:us-east-1:1:alias/aws/s3"}])
def test_s3s_own_kms_key_needs_no_right_of_the_nodes(default: dict[str, str]) -> None:
    network = Network()
    network.encryption = {"SSEAlgorithm": "aws:kms"} | default
    assert bad(network, **OWN, bucket_name="mine") == []


def test_a_link_of_the_whole_file_system_exports_checkpoints_too() -> None:
    network = Network()
    network.links = [link("/")]
    assert bad(network, **OWN, security_group_id=GROUP, fsx_id=FSX) == []


def test_the_missing_link_is_typed_with_file_system_and_bucket() -> None:
    network = Network()
    network.links = []
    own = {**OWN, "security_group_id": GROUP, "fsx_id": FSX}
    (with_bucket,) = bad(network, **own, bucket_name="mine")
    assert f"--file-system-id {FSX} --file-system-path /checkpoints" in with_bucket.mend
    assert "--data-repository-path s3://mine/checkpoints/ " in with_bucket.mend


def test_rules_by_address_and_by_prefix_list_count_too() -> None:
    network = Network()
    by_address = [tcp(0, 65535, IpRanges=[{"CidrIp": "10.1.0.0/16"}])]
    by_list = [tcp(988, 1023, PrefixListIds=[{"PrefixListId": "pl-1"}])]
    network.lustre_rules = {"in": by_address, "out": by_list}
    assert bad(network, **OWN, security_group_id=GROUP, fsx_id=FSX) == []
    network.lustre_rules["in"] = [tcp(0, 65535, IpRanges=[{"CidrIp": "10.1.0.0/24"}])]
    assert bad(network, **OWN, security_group_id=GROUP, fsx_id=FSX)


def test_before_our_own_security_group_is_there_a_closed_file_system_is_a_warning_with_the_way() -> None:
    """Its id is known only after NetworkStack; the rules to type come with it."""
    network = Network()
    network.lustre_rules = {"in": [], "out": []}
    (warning,) = bad(network, **OWN, fsx_id=FSX)
    assert warning.verdict == "warning"
    assert "npx cdk deploy NetworkStack" in warning.mend
    network.network_stack = {"VpcId": VPC, "NodeSecurityGroupId": GROUP}
    (problem,) = bad(network, **OWN, fsx_id=FSX)
    assert problem.verdict == "problem"
    for direction in ("ingress", "egress"):
        command = f"authorize-security-group-{direction} --group-id sg-lustre --ip-permissions "
        assert (
            command + f"'IpProtocol=tcp,FromPort=988,ToPort=988,UserIdGroupPairs=[{{GroupId={GROUP}}}]' "
            in problem.mend
        )


def test_storage_in_another_vpc_than_a_new_one_is_a_problem() -> None:
    (problem,) = (each for each in bad(Network(), fsx_id=FSX) if each.verdict == "problem")
    assert problem.check == "Lustre: in the nodes' VPC"
    assert f"-c vpc_id={VPC}" in problem.mend


@pytest.mark.parametrize(
    ("key", "os", "verdict"),
    [
        ("ed25519", "ubuntu2204", "ok"),
        ("rsa", "ubuntu2204", "problem"),
        ("rsa", "alinux2023", "warning"),
        (None, "alinux2023", "problem"),
    ],
)
def test_a_key_must_be_there_and_of_a_kind_that_the_os_takes(key: str | None, os: str, verdict: str) -> None:
    network = Network()
    network.key = key
    (found,) = (each for each in findings(network, key_name="mine", os=os) if each.check == "key_name mine")
    assert found.verdict == verdict


def test_a_bracket_or_star_that_is_typed_is_quoted_since_zsh_takes_it_for_a_pattern() -> None:
    network = Network()
    network.links, network.encryption = [], {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "key/1"}
    network.group = {"in": [], "out": [], "vpc": VPC}
    network.lustre_rules = network.efs_rules = {"in": [], "out": []}
    own = {**OWN, "security_group_id": GROUP, "bucket_name": "mine", "fsx_id": FSX, "efs_id": EFS}
    typed = [
        line for each in bad(network, **own) for line in each.mend.splitlines() if line.startswith("aws ")
    ]
    assert len(typed) >= 7
    for line in typed:
        assert not re.search(r"[][{}*?$]", re.sub(r"'[^']*'", "", line)), line
