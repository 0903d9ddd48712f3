"""`trainctl preflight` asks for interface endpoints by the names that their services have in the region."""

import boto3
import pytest
from botocore.stub import Stubber

from ops.preflight.capacity.zone import Choice
from ops.preflight.network.routes import check_endpoints
from training_cluster.flags.network import INTERFACE_ENDPOINTS
from training_cluster.rules.context import read_settings

# Of DescribeVpcEndpointServices in Beijing, as the CDK's list has it; the others begin as everywhere.
WITH_CN = {"autoscaling", "cloudformation", "ec2", "ecr.api", "ecr.dkr", "monitoring", "sts"}


@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1"])
def test_services_are_found_by_their_regional_names(region: str) -> None:
    names = sorted(
        f"{'cn.' if region == 'cn-north-1' and each in WITH_CN else ''}com.amazonaws.{region}.{each}"
        for each in INTERFACE_ENDPOINTS
    )
    ec2 = boto3.client("ec2", region_name=region, aws_access_key_id="none", aws_secret_access_key="none")
    with Stubber(ec2) as stub:
        stub.add_response(
            "describe_vpc_endpoint_services",
            {"ServiceDetails": [{"ServiceName": each, "AvailabilityZones": ["here"]} for each in names]},
            {},
        )
        zone = Choice(types=(), zone_id="any", zone_name="here", suitable=(), refusal="")
        (finding,) = check_endpoints(read_settings({"endpoints": "private"}), lambda: zone, ec2)
    assert (finding.verdict, finding.found) == ("ok", f"all {len(names)} services")
