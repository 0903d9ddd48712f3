"""CloudFormation resource types that moto models, as handlers of ministack's engine.

A handler has the functions that the engine calls: create(logical_id, properties, stack_name) -> (physical id,
attributes), update(physical_id, old, new, stack_name, logical_id), delete(physical_id, properties).
"""

import contextlib
from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.address import ACCOUNT, REGION

Properties = dict[str, Any]
Attributes = dict[str, Any]
Handler = dict[str, Any]
Created = tuple[str, Attributes]

# Attributes for Fn::GetAtt, of all types together.
_ATTRIBUTES = frozenset(
    """
    AccessPointId AllocationId Arn AvailabilityZone CidrBlock CidrBlockAssociations DefaultNetworkAcl
    DefaultSecurityGroup DefaultVersionNumber DnsEntries FileSystemId GroupId Id InstanceId InternetGatewayId
    IpAddress LatestVersionNumber LaunchTemplateId NatGatewayId NetworkAclAssociationId NetworkInterfaceIds
    PrimaryPrivateIpAddress PrivateDnsName PrivateIp PublicDnsName PublicIp RouteTableId SubnetId VolumeId
    VpcEndpointId VpcId
    """.split()
)

# A change of only these does not replace the resource.
_IN_PLACE = {"Tags", "TagSpecifications"}


def ec2() -> Any:
    """Return moto's EC2 state."""
    from moto.ec2.models import ec2_backends  # noqa: PLC0415

    return ec2_backends[ACCOUNT][REGION]


class MotoType:
    """One type that moto models, as a handler of the engine."""

    def __init__(self, name: str) -> None:
        from moto.cloudformation.parsing import get_model_map  # noqa: PLC0415

        self.name, self._model = name, get_model_map()[name]
        self._resources: dict[str, Any] = {}

    def handler(self) -> Handler:
        """Return the handler for the engine."""
        return {
            "create": self.create,
            "update": self.update,
            "update_with_logical_id": True,
            "delete": self.delete,
        }

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Created:
        """Create a resource in moto."""
        from moto.cloudformation.parsing import generate_resource_name  # noqa: PLC0415

        property_name = self._model.cloudformation_name_type()
        name = properties.get(property_name) if property_name else None
        resource = self._model.create_from_cloudformation_json(
            name or generate_resource_name(self.name, stack_name, logical_id),
            {"Type": self.name, "Properties": properties},
            ACCOUNT,
            REGION,
            LogicalId=logical_id,
            StackId=stack_name,
            ResourceType=self.name,
        )
        physical_id = self.physical_id(resource, stack_name, logical_id)
        self._resources[physical_id] = resource
        self._tag(physical_id, properties)
        if self.name == "AWS::EC2::VPC":
            _set_dns(physical_id, properties)
        return physical_id, self.attributes(physical_id)

    def physical_id(self, resource: Any, stack_name: str, logical_id: str) -> str:
        """Return the value of Ref."""
        return getattr(resource, "physical_resource_id", None) or f"{stack_name}-{logical_id}"

    def resource(self, physical_id: str) -> Any:
        """Return moto's own object."""
        return self._resources[physical_id]

    def _tag(self, physical_id: str, properties: Properties) -> None:
        tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", []) if isinstance(tag, dict)}
        if tags and self.name.startswith("AWS::EC2::"):
            with contextlib.suppress(Exception):  # some EC2 types cannot be tagged in moto
                ec2().create_tags([physical_id], tags)

    def attributes(self, physical_id: str) -> Attributes:
        """Return the attributes for Fn::GetAtt."""
        found: Attributes = {}
        for attribute in _ATTRIBUTES:
            with contextlib.suppress(Exception):  # each type has only its own
                value = self._resources[physical_id].get_cfn_attribute(attribute)
                if value is not None:
                    found[attribute] = value if isinstance(value, str | list | dict) else str(value)
        if self.name == "AWS::EC2::Subnet":
            found["AvailabilityZone"] = self._resources[physical_id].availability_zone
        if self.name in ("AWS::EC2::FlowLog", "AWS::EC2::VPCEndpoint"):
            found["Id"] = physical_id
        if self.name == "AWS::EC2::LaunchTemplate":
            found = {
                "LaunchTemplateId": physical_id,
                "LatestVersionNumber": "1",
                "DefaultVersionNumber": "1",
            } | found
        return found

    def update(
        self, physical_id: str, old: Properties, new: Properties, stack_name: str, logical_id: str
    ) -> Created:
        """Replace it, unless only its tags differ; a launch template gets a new version."""
        if self.name == "AWS::EC2::LaunchTemplate":
            version = self._resources[physical_id].create_version(new["LaunchTemplateData"], "")
            return physical_id, self.attributes(physical_id) | {"LatestVersionNumber": str(version.number)}
        changed = {key for key in {*old, *new} if old.get(key) != new.get(key)}
        if changed <= _IN_PLACE:
            return physical_id, self.attributes(physical_id)
        return self.create(logical_id, new, stack_name)

    def delete(self, physical_id: str, properties: Properties) -> None:
        """Delete the resource from moto."""
        resource = self._resources.pop(physical_id, None)
        if delete := _DELETERS.get(self.name):
            with contextlib.suppress(KeyError):  # it is already deleted
                delete(physical_id, properties)
            return
        try:
            resource.delete(ACCOUNT, REGION)
        except (TypeError, AttributeError):
            with contextlib.suppress(NotImplementedError):
                self._model.delete_from_cloudformation_json(
                    physical_id, {"Type": self.name, "Properties": properties}, ACCOUNT, REGION
                )


def _set_dns(vpc_id: str, properties: Properties) -> None:
    """Set a VPC's DNS attributes, which moto does not read from a template and login nodes need."""
    for attribute, name, default in (
        ("enable_dns_support", "EnableDnsSupport", True),
        ("enable_dns_hostnames", "EnableDnsHostnames", False),
    ):
        ec2().modify_vpc_attribute(vpc_id, attribute, str(properties.get(name, default)).lower() == "true")


def _disassociate(_id: str, properties: Properties) -> None:
    table = ec2().route_tables.get(properties["RouteTableId"])
    for association, subnet in list(table._associations.items() if table else []):
        if subnet == properties["SubnetId"]:
            ec2().disassociate_route_table(association)


def _release(id_: str, _: Properties) -> None:
    key = "allocation_id" if id_.startswith("eipalloc") else "address"
    ec2().release_address(**{key: id_})


def _terminate(id_: str, _: Properties) -> None:
    """Terminate an instance, unless it was terminated by hand, which moto's model would refuse."""
    if ec2().get_instance(id_).state != "terminated":
        ec2().terminate_instances([id_])


# Types whose moto model cannot be deleted through CloudFormation.
_DELETERS: dict[str, Callable[[str, Properties], Any]] = {
    "AWS::EC2::EIP": _release,
    "AWS::EC2::InternetGateway": lambda i, _: ec2().delete_internet_gateway(i),
    "AWS::EC2::NatGateway": lambda i, _: ec2().delete_nat_gateway(i),
    "AWS::EC2::Route": lambda _, p: ec2().delete_route(p["RouteTableId"], p.get("DestinationCidrBlock")),
    "AWS::EC2::RouteTable": lambda i, _: ec2().delete_route_table(i),
    "AWS::EC2::SubnetRouteTableAssociation": _disassociate,
    "AWS::EC2::VPCGatewayAttachment": lambda _, p: ec2().detach_internet_gateway(
        p["InternetGatewayId"], p["VpcId"]
    ),
    "AWS::EC2::NetworkInterface": lambda i, _: ec2().enis.pop(i, None),
    "AWS::EC2::Volume": lambda i, _: ec2().delete_volume(i),
    "AWS::EC2::VPCEndpoint": lambda i, _: ec2().delete_vpc_endpoints([i]),
    "AWS::EC2::FlowLog": lambda i, _: ec2().delete_flow_logs([i]),
    "AWS::EC2::SecurityGroupIngress": lambda _, __: None,
    "AWS::EC2::Instance": _terminate,
}
