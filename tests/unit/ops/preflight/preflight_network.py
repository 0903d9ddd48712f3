"""An account, network and storage that pass `trainctl preflight`; a test makes one thing of it bad."""

import json
from typing import Any

from ops.preflight.checks import run_checks
from ops.preflight.finding import Finding
from tests.unit.assets.cluster_image import image_fakes
from tests.unit.assets.cluster_image.image_fakes import VERSION
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.preflight.preflight_account import ACCOUNT, AccountWide
from training_cluster.rules.context import read_settings

VPC, PUBLIC, PRIVATE = "vpc-0aaaaaaaaaaaaaaaa", "subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"
GROUP, FSX, EFS = "sg-0aaaaaaaaaaaaaaaa", "fs-0aaaaaaaaaaaaaaaa", "fs-0eeeeeeeeeeeeeeee"
OWN = {"vpc_id": VPC, "public_subnet_id": PUBLIC, "private_subnet_id": PRIVATE}
ITSELF = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": GROUP}]}
WORLD = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
IGW, NAT = {"GatewayId": "igw-1"}, {"NatGatewayId": "nat-1"}


def tcp(first: int, last: int, **peer: Any) -> dict[str, Any]:
    return {"IpProtocol": "tcp", "FromPort": first, "ToPort": last} | peer


def link(folder: str, kind: str = "AutoExportPolicy") -> dict[str, Any]:
    return {"FileSystemPath": folder, "S3": {kind: {"Events": ["NEW", "CHANGED"]}}}


FROM_NODES = {"UserIdGroupPairs": [{"GroupId": GROUP}]}
LUSTRE_RULES = [tcp(988, 988, **FROM_NODES), tcp(1018, 1023, **FROM_NODES)]


class Network(AccountWide):
    """The network and storage of the account."""

    def __init__(self) -> None:
        super().__init__()
        self.vpcs = [VPC]
        self.dns = {"enableDnsSupport": True, "enableDnsHostnames": True}
        self.subnets = {
            PUBLIC: {"MapPublicIpOnLaunch": True, "CidrBlock": "10.1.0.0/20"},
            PRIVATE: {"MapPublicIpOnLaunch": False, "CidrBlock": "10.1.128.0/17"},
        }
        for id_, subnet in self.subnets.items():
            subnet |= {"SubnetId": id_, "VpcId": VPC, "AvailabilityZoneId": "use1-az4"}
            subnet |= {"AvailableIpAddressCount": 4000, "OwnerId": ACCOUNT}
        self.routes: dict[str, list[dict[str, str]]] = {PUBLIC: [IGW], PRIVATE: [NAT]}
        self.s3_endpoint_of = [PRIVATE]
        self.group: dict[str, Any] = {"in": [ITSELF], "out": [ITSELF, WORLD], "vpc": VPC}
        self.offered = {"use1-az4": ["p4d.24xlarge", "c5.4xlarge"], "use1-az1": ["c5.4xlarge"]}
        self.network_stack: dict[str, str] = {}
        self.storage_stack: dict[str, str] = {}
        """Outputs of both."""
        self.cluster_resources: dict[str, tuple[str, str]] = {}
        """Of TrainingClusterStack: logical id -> type and physical id; no stack without any."""
        self.description = "Training Cluster: network"
        self.bucket: Any = {"BucketRegion": "us-east-1"}
        self.encryption: dict[str, str] = {"SSEAlgorithm": "AES256"}
        self.versioning = "Enabled"
        self.links: list[dict[str, Any]] = [link("/checkpoints")]
        self.interfaces = 0
        """Network interfaces beside that of Lustre."""
        self.lustre: Any = {"FileSystemType": "LUSTRE", "FileSystemTypeVersion": "2.15"}
        self.lustre |= {"Lifecycle": "AVAILABLE", "VpcId": VPC}
        self.lustre_rules: dict[str, Any] = {"in": LUSTRE_RULES, "out": LUSTRE_RULES}
        self.efs: Any = [{"zone": "use1-az4"}]
        nfs = [tcp(2049, 2049, **FROM_NODES)]
        self.efs_rules: dict[str, Any] = {"in": nfs, "out": nfs}
        self.key: str | None = "ed25519"
        self.images = {image_fakes.OWN: image_fakes.image(Tags=image_fakes.tagged())}
        self.images[image_fakes.OLD] = image_fakes.official()
        self.image_stack: dict[str, str] = {}
        """Its outputs."""
        self.parameters: dict[str, str] = {"/cdk-bootstrap/hnb659fds/version": "21"}

    def account(self) -> Account:
        return Account(
            {
                "DescribeVpcs": {"Vpcs": [{"VpcId": id_} for id_ in self.vpcs]},
                "DescribeVpcAttribute": lambda asked: {
                    asked["Attribute"].replace("enable", "Enable"): {"Value": self.dns[asked["Attribute"]]}
                },
                "DescribeSubnets": lambda asked: {
                    "Subnets": [self.subnets[id_] for id_ in _values(asked) if id_ in self.subnets]
                },
                "DescribeRouteTables": self._tables,
                "DescribeVpcEndpoints": {
                    "VpcEndpoints": [
                        {
                            "VpcEndpointId": "vpce-1",
                            "State": "available",
                            "ServiceName": "com.amazonaws.us-east-1.s3",
                            "RouteTableIds": [f"rtb-{id_}" for id_ in self.s3_endpoint_of],
                        }
                    ]
                },
                "DescribeSecurityGroups": self._groups,
                "DescribeInstanceTypeOfferings": lambda asked: {
                    "InstanceTypeOfferings": [
                        {"Location": zone, "InstanceType": type_}
                        for zone, types in self.offered.items()
                        for type_ in types
                        if type_ in _values(asked)
                    ]
                },
                **self._cloudformation(),
                **self._storage(),
                "DescribeKeyPairs": {"KeyPairs": [{"KeyType": self.key}] if self.key else []},
                "DescribeImages": self._images,
                "GetParameter": lambda asked: (
                    {"Parameter": {"Value": self.parameters[asked["Name"]]}}
                    if asked["Name"] in self.parameters
                    else Refused("ParameterNotFound")
                ),
                **self.account_wide(),
            }
        )

    def _images(self, asked: dict[str, Any]) -> Any:
        owned = {id_: each for id_, each in self.images.items() if "ImageOwnerAlias" in each}
        ids = asked.get("ImageIds") or list(owned)
        found = [{"ImageId": id_} | self.images[id_] for id_ in ids if id_ in self.images]
        if "ImageIds" not in asked:
            (pattern,) = next(each["Values"] for each in asked["Filters"] if each["Name"] == "name")
            found = [each for each in found if each["Name"].startswith(pattern.rstrip("*"))]
        elif not found:
            return Refused("InvalidAMIID.NotFound")
        return {"Images": found}

    def _tables(self, asked: dict[str, Any]) -> dict[str, Any]:
        filters = {each["Name"]: each["Values"][0] for each in asked["Filters"]}
        id_ = filters.get("association.subnet-id", "main")
        if id_ not in self.routes:
            return {"RouteTables": []}
        routes = [
            {"DestinationCidrBlock": "0.0.0.0/0", "State": "active"} | each for each in self.routes[id_]
        ]
        return {"RouteTables": [{"RouteTableId": f"rtb-{id_}", "Routes": routes}]}

    def _groups(self, asked: dict[str, Any]) -> dict[str, Any]:
        known = {GROUP: self.group, "sg-lustre": self.lustre_rules, "sg-0eeeeeeeeeeeeeeee": self.efs_rules}
        return {
            "SecurityGroups": [
                {
                    "GroupId": id_,
                    "VpcId": group.get("vpc", VPC),
                    "IpPermissions": group["in"],
                    "IpPermissionsEgress": group["out"],
                }
                for id_ in _values(asked)
                if (group := known[id_])
            ]
        }

    def _cloudformation(self) -> dict[str, Any]:
        stack = {"StackStatus": "CREATE_COMPLETE", "CreationTime": "2026-01-01"}
        template = json.dumps({"Description": self.description})
        made = {
            "TrainingCluster-Network": self.network_stack,
            "TrainingCluster-Storage": self.storage_stack,
            f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}": self.image_stack,
            "TrainingClusterStack": {"HeadNodeInstanceId": "i-1"} if self.cluster_resources else {},
        }
        return {
            "DescribeStacks": {
                "Stacks": [
                    stack
                    | {"StackName": name}
                    | {"Outputs": [{"OutputKey": k, "OutputValue": v} for k, v in outputs.items()]}
                    for name, outputs in made.items()
                    if outputs
                ]
            },
            "GetTemplate": {"TemplateBody": template},
            "ListStackResources": self._resources,
        }

    def _resources(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = self.cluster_resources if asked["StackName"] == "TrainingClusterStack" else {}
        state = {"ResourceStatus": "CREATE_COMPLETE", "LastUpdatedTimestamp": "2026-01-01"}
        return {
            "StackResourceSummaries": [
                state | {"LogicalResourceId": id_, "ResourceType": type_, "PhysicalResourceId": physical}
                for id_, (type_, physical) in found.items()
            ]
        }

    def _file_systems(self, own: Any) -> Any:
        def answer(asked: dict[str, Any]) -> Any:
            if "FileSystemIds" not in asked:
                return {"FileSystems": self.file_systems}
            return {"FileSystems": [own]} if own else Refused("FileSystemNotFound")

        return answer

    def _storage(self) -> dict[str, Any]:
        lustre = self.lustre and self.lustre | {
            "FileSystemId": FSX,
            "NetworkInterfaceIds": ["eni-0aaaaaaaaaaaaaaaa"],
        }
        return {
            "HeadBucket": self.bucket,
            "GetBucketVersioning": {"Status": self.versioning},
            "GetBucketEncryption": {
                "ServerSideEncryptionConfiguration": {
                    "Rules": [{"ApplyServerSideEncryptionByDefault": self.encryption}]
                }
            },
            "DescribeDataRepositoryAssociations": {"Associations": self.links},
            "fsx.DescribeFileSystems": self._file_systems(lustre),
            "DescribeNetworkInterfaces": {
                "NetworkInterfaces": [
                    {"Groups": [{"GroupId": "sg-lustre"}]},
                    *[{"Groups": []}] * self.interfaces,
                ]
            },
            "DescribeMountTargets": Refused("FileSystemNotFound")
            if self.efs is None
            else {
                "MountTargets": [
                    {
                        "MountTargetId": "fsmt-0aaaaaaaaaaaaaaaa",
                        "FileSystemId": EFS,
                        "SubnetId": PRIVATE,
                        "LifeCycleState": "available",
                        "AvailabilityZoneId": each["zone"],
                        "VpcId": VPC,
                    }
                    for each in self.efs
                ]
            },
            "DescribeMountTargetSecurityGroups": {"SecurityGroups": ["sg-0eeeeeeeeeeeeeeee"]},
        }


def _values(asked: dict[str, Any]) -> list[str]:
    return [value for each in asked["Filters"] for value in each["Values"]]


def findings(network: Network, **flags: str) -> list[Finding]:
    return run_checks(read_settings(flags), network.account().client)


def bad(network: Network, **flags: str) -> list[Finding]:
    return [each for each in findings(network, **flags) if each.verdict != "ok"]
