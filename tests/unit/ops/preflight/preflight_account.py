"""An account in which a cluster can be deployed: who asks, its quotas, what runs in it, what is reserved."""

import datetime
import json
from typing import Any

from tests.unit.ops.fake_account import Refused

ACCOUNT = "123456789012"
RESERVATION = "cr-0123456789abcdef0"
DAY = datetime.timedelta(days=1)
ENDPOINTS = ("cloudformation", "ec2", "logs", "monitoring", "autoscaling", "secretsmanager", "sts", "ssm")
VPCS, ADDRESSES, NATS, LUSTRE = "L-F678F1CE", "L-0263D0A3", "L-FE5A380F", "L-8F1B9C74"
INTERFACES, GP3 = "L-DF5E4CA3", "L-7A658B76"
STANDARD, P, P_SPOT = "L-1216C47A", "L-417A185B", "L-7212CCBC"


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def instance(
    type_: str, *, lifecycle: str | None = None, cluster: str | None = None, interfaces: int = 1
) -> dict[str, Any]:
    found: dict[str, Any] = {"InstanceType": type_, "NetworkInterfaces": [{}] * interfaces}
    found |= {"InstanceLifecycle": lifecycle} if lifecycle else {}
    found |= {"Tags": [{"Key": "parallelcluster:cluster-name", "Value": cluster}]} if cluster else {}
    return found


class AccountWide:
    """Answers that do not depend on the network; every number is large enough for two p4d nodes."""

    def __init__(self) -> None:
        self.arn = f"arn:aws:iam::{ACCOUNT}:user/someone"
        self.opted_in = "opt-in-not-required"
        self.quotas: dict[str, float] = {VPCS: 5, ADDRESSES: 5, NATS: 5, LUSTRE: 100800}
        self.quotas |= {INTERFACES: 5000, GP3: 50}
        self.quotas |= {STANDARD: 1152, P: 192, P_SPOT: 192}
        self.default_quotas: dict[str, float] = {}
        """Of those that the account has no value of its own for."""
        self.instances: list[dict[str, Any]] = []
        self.addresses = 0
        self.nat_subnets: list[str] = []
        self.volumes: list[dict[str, Any]] = []
        self.zones = {"use1-az1": "us-east-1a", "use1-az4": "us-east-1d"}
        self.reservation: Any = {
            "CapacityReservationId": RESERVATION,
            "State": "active",
            "InstanceType": "p4d.24xlarge",
            "AvailabilityZone": "us-east-1d",
            "AvailabilityZoneId": "use1-az4",
            "TotalInstanceCount": 2,
            "AvailableInstanceCount": 0,
            "StartDate": now() - DAY,
            "Tenancy": "default",
            "InstancePlatform": "Linux/UNIX",
            "InstanceMatchCriteria": "targeted",
            "OwnerId": ACCOUNT,
        }
        self.endpoints = {name: list(self.zones.values()) for name in (*ENDPOINTS, "ssmmessages")}
        self.boundary: Any = {"Policy": {}}
        self.bucket: Any = {}
        self.secret: Any = {"Name": "slurm"}
        self.group_strategies = ["cluster"]
        self.budgets: Any = {"Budgets": []}
        self.roles = {"AWSServiceRoleForEC2Spot": "/aws-service-role/spot.amazonaws.com/"}
        """Path by name."""
        self.volume_key = "alias/aws/ebs"
        self.key_policy: dict[str, Any] = {"Statement": []}
        """Of a key of the account's own."""
        self.file_systems: list[dict[str, Any]] = []
        self.refused: dict[str, Refused] = {}
        """Operations that AWS does not answer, whatever stands above."""

    def account_wide(self) -> dict[str, Any]:
        """Return the answers by operation."""
        return {
            "GetCallerIdentity": {"Account": ACCOUNT, "Arn": self.arn, "UserId": "someone"},
            "DescribeRegions": {"Regions": [{"RegionName": "us-east-1", "OptInStatus": self.opted_in}]},
            "GetServiceQuota": lambda asked: self._quota(self.quotas, asked),
            "GetAWSDefaultServiceQuota": lambda asked: self._quota(self.default_quotas, asked),
            "DescribeInstances": {"Reservations": [{"Instances": self.instances}]},
            "DescribeInstanceTypes": lambda asked: {
                "InstanceTypes": [
                    {"InstanceType": type_, "VCpuInfo": {"DefaultVCpus": 8}}
                    for each in asked["Filters"]
                    for type_ in each["Values"]
                ]
            },
            "DescribeAddresses": {"Addresses": [{} for _ in range(self.addresses)]},
            "DescribeNatGateways": {"NatGateways": [{"SubnetId": each} for each in self.nat_subnets]},
            "DescribeVolumes": {"Volumes": self.volumes},
            "DescribeAvailabilityZones": {
                "AvailabilityZones": [
                    {"ZoneId": id_, "ZoneName": name, "State": "available", "ZoneType": "availability-zone"}
                    for id_, name in self.zones.items()
                ]
            },
            "DescribeCapacityReservations": self._reservations,
            "DescribeVpcEndpointServices": {
                "ServiceDetails": [
                    {"ServiceName": f"com.amazonaws.us-east-1.{name}", "AvailabilityZones": zones}
                    for name, zones in self.endpoints.items()
                ]
            },
            "GetPolicy": self.boundary,
            "HeadBucket": self.bucket,
            "DescribeSecret": self.secret,
            "DescribePlacementGroups": {
                "PlacementGroups": [{"Strategy": each} for each in self.group_strategies]
            },
            "DescribeBudgets": self.budgets,
            "GetRole": self._role,
            "GetEbsDefaultKmsKeyId": {"KmsKeyId": self.volume_key},
            "DescribeKey": lambda asked: {
                "KeyMetadata": {
                    "KeyId": asked["KeyId"],
                    "Arn": asked["KeyId"],
                    "AWSAccountId": ACCOUNT,
                    "KeyManager": "CUSTOMER",
                    "Enabled": True,
                    "KeyState": "Enabled",
                }
            },
            "GetKeyPolicy": {"Policy": json.dumps(self.key_policy)},
            **self.refused,
        }

    def _role(self, asked: dict[str, Any]) -> Any:
        name = asked["RoleName"]
        if name not in self.roles:
            return Refused("NoSuchEntity")
        role = {"Path": self.roles[name], "RoleName": name, "RoleId": "AROAEXAMPLEEXAMPLE00"}
        return {
            "Role": role | {"Arn": f"arn:aws:iam::{ACCOUNT}:role{role['Path']}{name}", "CreateDate": now()}
        }

    def _quota(self, quotas: dict[str, float], asked: dict[str, Any]) -> Any:
        value = quotas.get(asked["QuotaCode"])
        return Refused("NoSuchResourceException") if value is None else {"Quota": {"Value": value}}

    def _reservations(self, asked: dict[str, Any]) -> Any:
        if self.reservation is None:
            by_id = "CapacityReservationIds" in asked
            empty: dict[str, Any] = {"CapacityReservations": []}
            return Refused("InvalidCapacityReservationId.NotFound") if by_id else empty
        return {"CapacityReservations": [self.reservation]}
