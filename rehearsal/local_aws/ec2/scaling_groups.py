"""Auto Scaling groups of login nodes: ministack's records, with moto's instances as their targets."""

from typing import Any

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.ec2.instances import InstanceType
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties, ec2

_TYPE = "AWS::AutoScaling::AutoScalingGroup"


def install() -> None:
    """Let groups launch and terminate instances."""
    theirs = original(_TYPE)

    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        name, attributes = theirs["create"](logical_id, properties, stack)
        _make_hooks(name, properties)
        _scale(name, properties)
        return name, attributes

    def update(name: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        new_name, attributes = theirs["update"](name, old, new, stack, logical_id)
        _scale(new_name, new)
        return new_name, attributes

    def delete(name: str, properties: Properties) -> None:
        if group := hooks.find("SCALING_GROUPS").get(name):
            group["DesiredCapacity"] = 0
            _scale(name, properties)
        theirs["delete"](name, properties)

    wrap(_TYPE, create=create, update=update, delete=delete)


def _make_hooks(name: str, properties: Properties) -> None:
    for wanted in properties.get("LifecycleHookSpecificationList", []):
        client("autoscaling").put_lifecycle_hook(AutoScalingGroupName=name, **wanted)


def _scale(name: str, properties: Properties) -> None:
    """Launch or terminate instances up to the desired number; lifecycle hooks do not delay them."""
    group = hooks.find("SCALING_GROUPS")[name]
    group["AvailabilityZones"] = sorted({_zone(s) for s in properties.get("VPCZoneIdentifier") or []})
    if not properties.get("LaunchTemplate"):
        return
    while len(group["Instances"]) > group["DesiredCapacity"]:
        ended = group["Instances"].pop()["InstanceId"]
        ec2().terminate_instances([ended])
        _set_targets(properties, remove=ended)
    while len(group["Instances"]) < group["DesiredCapacity"]:
        subnets = properties["VPCZoneIdentifier"]
        subnet = subnets[len(group["Instances"]) % len(subnets)]
        instance = _launch(group, properties["LaunchTemplate"], subnet)
        group["Instances"].append(instance)
        _set_targets(properties, add=instance["InstanceId"])


def _zone(subnet: str) -> str:
    return str(ec2().get_subnet(subnet).availability_zone)


def _launch(group: dict[str, Any], template: dict[str, Any], subnet: str) -> dict[str, Any]:
    name = group["AutoScalingGroupName"]
    id_, _ = InstanceType().create(name, {"LaunchTemplate": template, "SubnetId": subnet}, name)
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"] if tag["PropagateAtLaunch"]}
    ec2().create_tags([id_], tags | {"aws:autoscaling:groupName": name})
    return {
        "InstanceId": id_,
        "LifecycleState": "InService",
        "HealthStatus": "Healthy",
        "AvailabilityZone": _zone(subnet),
        "ProtectedFromScaleIn": False,
        "LaunchTemplate": group["LaunchTemplate"],
        "LaunchConfigurationName": "",
    }


def _set_targets(properties: Properties, *, add: str = "", remove: str = "") -> None:
    """Register or deregister an instance; ministack reports every target as healthy."""
    balancers = client("elbv2")
    for arn in properties.get("TargetGroupARNs", []):
        if remove:
            balancers.deregister_targets(TargetGroupArn=arn, Targets=[{"Id": remove}])
        if add:
            balancers.register_targets(TargetGroupArn=arn, Targets=[{"Id": add}])
