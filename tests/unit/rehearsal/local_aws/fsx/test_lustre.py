"""The local FSx checks the security groups of a new file system as FSx does."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.local_aws.fsx.lustre import check_groups


def test_efa_needs_all_traffic_within_the_group(client: Callable[[str], Any]) -> None:
    """EC2 creates a group that lets all traffic out to addresses."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = str(ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"])
    itself: dict[str, Any] = {"UserIdGroupPairs": [{"GroupId": group}]}
    lustre = itself | {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988}
    everywhere = {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}  # no address covers EFA's traffic
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    wanted = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [subnet]}
    with pytest.raises(ClientError, match=r"InvalidNetworkSettings.*port 988"):
        client("fsx").create_file_system(**wanted, SecurityGroupIds=[group])
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
    assert client("fsx").create_file_system(**wanted, SecurityGroupIds=[group])["FileSystem"]
