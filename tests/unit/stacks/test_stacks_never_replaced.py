"""Words that no release may change: CloudFormation would have to replace what cannot be replaced.

It refuses to replace a resource that has a name of ours ("cannot update a stack when a custom-named resource
requires replacing"), and what another stack imports. The data's own stack: functions/test_guard.py.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.resource_schemas import resource_schema
from tests.unit.stacks.app import App
from training_cluster.acknowledgements import flat

# What others stand in or keep their data in; replaced, it would collide with itself (a CIDR) or be empty.
IN_USE = (
    "AWS::EC2::VPC",
    "AWS::EC2::Subnet",
    "AWS::EC2::SecurityGroup",
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBInstance",
    "AWS::RDS::DBClusterParameterGroup",
)
# Properties that give a resource a name of ours.
NAMES = ("ManagedPolicyName", "KeyName", "Budget.BudgetName", "LogGroupName", "RoleName", "FunctionName")


def _create_only(type_: str) -> set[tuple[str, ...]]:
    """Return the paths of the properties whose change replaces a resource of this type."""
    if type_.startswith("Custom::"):
        return set()
    schema = resource_schema(type_)
    return {
        tuple(path.removeprefix("/properties/").split("/")) for path in schema.get("createOnlyProperties", [])
    }


def _at(properties: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = properties
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _fixed(template: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return create-only values, by resource, of resources with our names or in use by others.

    Without the name itself: another name is another resource, which CloudFormation makes beside the first.
    """
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        found = {".".join(path): _at(properties, path) for path in _create_only(resource["Type"])}
        found = {path: value for path, value in found.items() if value is not None}
        names = [path for path in found if path in NAMES]
        if names or resource["Type"] in IN_USE:
            values = {path: value for path, value in found.items() if path not in names}
            if values:
                yield name, values


def _words(value: Any) -> Any:
    return value if isinstance(value, bool | list) else flat(value)


# Another threshold is another notification: change the budget's name with it (budget.py).
NOTIFICATIONS = [
    {
        "Notification": {
            "ComparisonOperator": "GREATER_THAN",
            "NotificationType": kind,
            "Threshold": percent,
            "ThresholdType": "PERCENTAGE",
        },
        "Subscribers": [{"Address": "somebody@example.com", "SubscriptionType": "EMAIL"}],
    }
    for kind, percent in (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))
]
VPC, IMPORTED_VPC = "<NetworkVpc7FB7348F>", "TrainingCluster-Network:VpcId"
STAYS: dict[str, dict[str, dict[str, Any]]] = {
    "NetworkStack": {
        "NetworkVpc7FB7348F": {"CidrBlock": "10.0.0.0/16"},
        "NetworkVpcPublicSubnet1Subnet36933139": {
            "AvailabilityZone": "<Zone4AD00F4C.Name>",
            "CidrBlock": "10.0.0.0/20",
            "VpcId": VPC,
        },
        "NetworkVpcPrivateSubnet1Subnet6DD86AE6": {
            "AvailabilityZone": "<Zone4AD00F4C.Name>",
            "CidrBlock": "10.0.128.0/17",
            "VpcId": VPC,
        },
        "NetworkVpcFlowLog9B71FB8D": {
            "DeliverLogsPermissionArn": "<NetworkFlowLogRole4C0B2D1D.Arn>",
            "LogDestinationType": "cloud-watch-logs",
            "MaxAggregationInterval": "600",
            "ResourceId": VPC,
            "ResourceType": "VPC",
            "TrafficType": "ALL",
        },
        "NodeSecurityGroupBF71D90C": {
            "GroupDescription": "Nodes of training clusters: each other (EFA needs both directions), and out",
            "VpcId": VPC,
        },
        "EndpointsSecurityGroup252B86E5": {
            "GroupDescription": "Interface endpoints: the VPC, over HTTPS",
            "VpcId": VPC,
        },
    },
    "AccountingStack": {
        "AccountingSecurityGroupBEC88DBC": {
            "GroupDescription": "Slurm accounting: the head node, over MySQL",
            "VpcId": IMPORTED_VPC,
        },
        "AccountingSubnet1Subnet29C70063": {
            "AvailabilityZone": "TrainingCluster-Network:ZoneName",
            "CidrBlock": "10.0.16.0/24",
            "VpcId": IMPORTED_VPC,
        },
        "AccountingSubnet2SubnetC0024195": {
            "AvailabilityZone": "TrainingCluster-Network:OtherZoneName",
            "CidrBlock": "10.0.17.0/24",
            "VpcId": IMPORTED_VPC,
        },
        "AccountingParameters23E7102D": {
            "Description": "Slurm accounting: TLS only, and slurmdbd's lock wait timeout",
            "Family": "aurora-mysql8.0",
        },
        "AccountingDatabase4284BBE7": {
            "DBSubnetGroupName": "<AccountingDatabaseSubnetsF317B789>",
            "StorageEncrypted": True,
        },
        "AccountingDatabaseWriterD3BC9D19": {"DBClusterIdentifier": "<AccountingDatabase4284BBE7>"},
    },
    "TrainingClusterStack": {
        "KeyPair1622897B": {
            "KeyFormat": "pem",
            "KeyType": "ed25519",
            "Tags": [{"Key": "training-cluster:cluster", "Value": "training"}],
        },
        "NodesPolicy7EE66815": {"Description": "", "Path": "/"},
        "DatasetsPolicyD4159B9D": {"Description": "", "Path": "/"},
        "LoginPolicyD5C011EF": {"Description": "", "Path": "/"},
        "MetricsPolicyB12BCBD9": {"Description": "", "Path": "/"},
        "MonitoringBudgetD73E4369": {"NotificationsWithSubscribers": NOTIFICATIONS},
    },
}


@pytest.mark.parametrize("stack", STAYS)
def test_what_cannot_be_replaced_stays_as_first_deployed(everything: App, stack: str) -> None:
    found = {
        name: {path: _words(value) for path, value in values.items()}
        for name, values in _fixed(everything.templates[stack])
    }
    assert found == STAYS[stack]
