"""AWS::IAM::InstanceProfile, whose Ref is its name on AWS and its ARN in ministack's engine."""

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.emulators.moto_types import Created, Properties

_TYPE = "AWS::IAM::InstanceProfile"


def install() -> None:
    """Convert names to ARNs for the engine's handler, and its ARNs to names."""
    handler = original(_TYPE)

    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        arn, attributes = handler["create"](logical_id, properties, stack)
        return _name(arn), attributes

    def update(name: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        arn, attributes = handler["update"](_arn(name), old, new, stack, logical_id)
        return _name(arn), attributes

    def delete(name: str, properties: Properties) -> None:
        handler["delete"](_arn(name), properties)

    wrap(_TYPE, create=create, update=update, delete=delete)


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]


def _arn(name: str) -> str:
    profile = hooks.find(ministack_hooks.INSTANCE_PROFILES).get(name)
    return str(profile["Arn"]) if profile else name
