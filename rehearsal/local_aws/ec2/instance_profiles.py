"""AWS::IAM::InstanceProfile, whose Ref is its name on AWS and its ARN in ministack's engine."""

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.emulators.moto_types import Created, Properties
from rehearsal.local_aws.rights.iam_resources import profile_arn

_TYPE = "AWS::IAM::InstanceProfile"


def install() -> None:
    """Convert names to ARNs for the engine's handler, and its ARNs to names."""
    handler = original(_TYPE)

    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        arn, attributes = handler["create"](logical_id, properties, stack)
        return _name(arn), attributes

    def update(name: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        arn, attributes = handler["update"](profile_arn(name), old, new, stack, logical_id)
        return _name(arn), attributes

    def delete(name: str, properties: Properties) -> None:
        handler["delete"](profile_arn(name), properties)

    wrap(_TYPE, create=create, update=update, delete=delete)


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]
