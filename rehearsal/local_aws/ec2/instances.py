"""AWS::EC2::Instance with a launch template, as ParallelCluster's head and login nodes."""

from rehearsal.local_aws.emulators.moto_types import Created, MotoType, Properties, ec2


class InstanceType(MotoType):
    """AWS::EC2::Instance; moto supports neither launch templates nor existing network interfaces in it."""

    def __init__(self) -> None:
        super().__init__("AWS::EC2::Instance")

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Created:
        """Create an instance from its launch template, in the subnet of its network interface."""
        launch = properties.get("LaunchTemplate") or {}
        if launch:
            template = ec2().get_launch_template(launch["LaunchTemplateId"])
            properties = {**template.get_version(launch.get("Version", "$Latest")).data, **properties}
        interface = (properties.get("NetworkInterfaces") or [{}])[0]
        existing = ec2().enis.get(interface.get("NetworkInterfaceId"))
        subnet = existing.subnet.id if existing else interface.get("SubnetId") or properties.get("SubnetId")
        dropped = {"IamInstanceProfile", "BlockDeviceMappings", "NetworkInterfaces", "LaunchTemplate"}
        kept = {key: value for key, value in properties.items() if key not in dropped}
        tags = [*_instance_tags(properties), *properties.get("Tags", [])]
        created = super().create(logical_id, kept | {"SubnetId": subnet, "Tags": tags}, stack_name)
        for own in ec2().get_instance(created[0]).nics.values():
            own.delete_on_termination = True  # EC2's default for an interface created with the instance
        return created

    def update(  # the engine's signature
        self,
        physical_id: str,
        old: Properties,  # noqa: ARG002
        new: Properties,  # noqa: ARG002
        stack_name: str,  # noqa: ARG002
        logical_id: str,  # noqa: ARG002
    ) -> Created:
        """Keep the instance: a changed launch template does not replace a head node here."""
        return physical_id, self.attributes(physical_id)


def _instance_tags(launch: Properties) -> list[dict[str, str]]:
    """Return the tags that a launch template gives to its instances."""
    specifications = launch.get("TagSpecifications", [])
    return [tag for s in specifications if s.get("ResourceType") == "instance" for tag in s.get("Tags", [])]
