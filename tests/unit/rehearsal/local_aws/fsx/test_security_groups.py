"""The local FSx checks the security groups of a new file system as FSx does."""

from typing import Any

import pytest

from rehearsal.local_aws.fsx import security_groups
from tests.unit.rehearsal.local_aws.conftest import Corrected

EVERYWHERE = {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


@pytest.fixture
def ec2(corrected: Corrected) -> Any:
    return corrected(lambda: None)("ec2")


@pytest.fixture
def group(ec2: Any) -> str:
    """Return a group that lets all traffic out to addresses, as EC2 creates it."""
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return str(ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"])


def _itself(group: str) -> dict[str, Any]:
    return {"UserIdGroupPairs": [{"GroupId": group}]}


def _permit(call: Any, group: str, **rule: Any) -> None:
    call(GroupId=group, IpPermissions=[rule])


def test_lustre_needs_its_port_open(ec2: Any, group: str) -> None:
    with pytest.raises(Exception, match="port 988"):
        security_groups.check([group], efa=False)
    port = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988}
    _permit(ec2.authorize_security_group_ingress, group, **port, **_itself(group))
    security_groups.check([group], efa=False)


def test_efa_needs_all_traffic_within_the_group(ec2: Any, group: str) -> None:
    for call, rule in (
        (ec2.authorize_security_group_ingress, EVERYWHERE),  # no address covers EFA's traffic
        (ec2.authorize_security_group_ingress, _itself(group)),
        (ec2.authorize_security_group_egress, _itself(group)),
    ):
        with pytest.raises(Exception, match="Insufficient security group permissions"):
            security_groups.check([group], efa=True)
        _permit(call, group, IpProtocol="-1", **rule)
    security_groups.check([group], efa=True)
