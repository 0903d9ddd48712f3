"""Resource types of EC2 for ministack's engine: moto's, and some that moto lacks."""

import uuid

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.cloudformation.handlers import register, simple
from rehearsal.local_aws.ec2.instances import InstanceType
from rehearsal.local_aws.emulators.moto_types import Created, MotoType, Properties, ec2

_GROUPS_WITH_EGRESS: set[str] = set()


def install() -> None:
    """Register every type of EC2 that moto models, and some that it does not."""
    from moto.cloudformation.parsing import get_model_map  # noqa: PLC0415

    for name in get_model_map():
        if name.startswith("AWS::EC2::"):
            register(name, MotoType(name).handler())
    register("AWS::EC2::Instance", InstanceType().handler())
    register("AWS::EC2::KeyPair", simple(_create_key_pair, lambda id_, _: ec2().delete_key_pair(id_)))
    register("AWS::EC2::SecurityGroupEgress", simple(_create_egress, lambda _id, _: None))
    register("AWS::CloudWatch::CompositeAlarm", simple(_create_composite_alarm, lambda _id, _: None))


def _create_key_pair(_logical_id: str, properties: Properties, _stack: str) -> Created:
    name, material = properties["KeyName"], properties.get("PublicKeyMaterial")
    tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])}
    if material:
        pair = ec2().import_key_pair(name, material, tags)
    else:
        pair = ec2().create_key_pair(name, properties.get("KeyType", "rsa"), tags)
    return name, {"KeyPairId": pair.id}


def _create_egress(_logical_id: str, properties: Properties, _stack: str) -> Created:
    group = properties.get("DestinationSecurityGroupId")
    _remove_default_egress(properties["GroupId"])
    ec2().authorize_security_group_egress(
        properties["GroupId"],
        str(properties["IpProtocol"]),
        properties.get("FromPort"),
        properties.get("ToPort"),
        [properties["CidrIp"]] if "CidrIp" in properties else [],
        source_groups=[{"GroupId": group}] if group else [],
    )
    return f"sgr-{uuid.uuid4().hex[:17]}", {}


def _remove_default_egress(group_id: str) -> None:
    """Remove a group's default allow-all rule when its first egress resource is created, as AWS does."""
    if group_id not in _GROUPS_WITH_EGRESS:
        _GROUPS_WITH_EGRESS.add(group_id)
        group = ec2().get_security_group_from_id(group_id)
        group.egress_rules = [rule for rule in group.egress_rules if rule.ip_protocol != "-1"]


def _create_composite_alarm(logical_id: str, properties: Properties, stack: str) -> Created:
    name = properties.get("AlarmName") or f"{stack}-{logical_id}"
    return name, {"Arn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{name}"}
