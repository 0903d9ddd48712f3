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
def test_s3s_own_kms_key_needs_no_right_of_the_nodes(default: dict[str, str]) -> None:
    network = Network()
    network.encryption = {"SSEAlgorithm": "aws:kms"} | default
    assert bad(network, **OWN, bucket_name="mine") == []


def test_a_link_of_the_whole_file_system_exports_checkpoints_too() -> None:
    network = Network()
    network.links = [link("/")]
    assert bad(network, **OWN, security_group_id=GROUP, fsx_id=FSX) == []


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
