"""`trainctl preflight`: own storage and key are looked at before anything is deployed."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.ops.preflight.preflight_network import (
    EFS,
    FSX,
    GROUP,
    OWN,
    VPC,
    Network,
    bad,
    link,
    tcp,
)

Change = Callable[[Network], Any]


@pytest.mark.parametrize("default", [{}, {"KMSMasterKeyID": "arn:aws:kms:us-east-1:1:alias/aws/s3"}])
def test_the_kms_key_of_s3_needs_no_rights(default: dict[str, str]) -> None:
    network = Network()
    network.encryption = {"SSEAlgorithm": "aws:kms"} | default
    assert bad(network, **OWN, bucket_name="mine") == []


def test_a_link_of_the_root_exports_checkpoints_too() -> None:
    network = Network()
    network.links = [link("/")]
    assert bad(network, **OWN, security_group_id=GROUP, fsx_id=FSX) == []


def test_rules_by_address_and_prefix_list_count_too() -> None:
    network = Network()
    by_address = [tcp(0, 65535, IpRanges=[{"CidrIp": "10.1.0.0/16"}])]
    by_list = [tcp(988, 1023, PrefixListIds=[{"PrefixListId": "pl-1"}])]
    network.lustre_rules = {"in": by_address, "out": by_list}
    assert bad(network, **OWN, security_group_id=GROUP, fsx_id=FSX) == []
    network.lustre_rules["in"] = [tcp(0, 65535, IpRanges=[{"CidrIp": "10.1.0.0/24"}])]
    assert bad(network, **OWN, security_group_id=GROUP, fsx_id=FSX)


def test_closed_lustre_without_our_group_is_a_warning() -> None:
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


def test_storage_outside_the_new_vpc_is_a_problem() -> None:
    (problem,) = (each for each in bad(Network(), fsx_id=FSX) if each.verdict == "problem")
    assert problem.check == "Lustre: in the nodes' VPC"
    assert f"-c vpc_id={VPC}" in problem.mend


def test_brackets_and_stars_in_commands_are_quoted() -> None:
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
