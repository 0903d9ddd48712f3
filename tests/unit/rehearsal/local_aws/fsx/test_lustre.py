"""The local FSx checks the security groups of a new file system as FSx does.

tests/slow/rehearsal/local_aws/cloudformation/test_engine.py deploys one without its port.
"""

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.local_aws.fsx.lustre import check_groups


def test_efa_needs_all_traffic_within_the_group(client: Callable[[str], Any]) -> None:
    """EC2 creates a group that lets all traffic out to addresses."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = str(ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"])
    itself: dict[str, Any] = {"UserIdGroupPairs": [{"GroupId": group}]}
    lustre = itself | {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988}
    everywhere = {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}  # no address covers EFA's traffic
    with pytest.raises(Exception, match="port 988"):
        check_groups([group], efa=False)
    for call, rule in (
        (ec2.authorize_security_group_ingress, lustre),
        (ec2.authorize_security_group_ingress, everywhere),
        (ec2.authorize_security_group_ingress, itself),
        (ec2.authorize_security_group_egress, itself),
    ):
        with pytest.raises(Exception, match="Insufficient security group permissions"):
            check_groups([group], efa=True)
        call(GroupId=group, IpPermissions=[{"IpProtocol": "-1", **rule}])
        check_groups([group], efa=False)
    check_groups([group], efa=True)
