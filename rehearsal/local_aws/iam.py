"""IAM in templates: boundaries of roles, and instance profiles whose Ref is their name.

ministack leaves boundaries out; the judge of rights reads them for conditions on iam:PermissionsBoundary. The
Ref of an instance profile is its ARN in ministack's engine.
"""

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties
from rehearsal.local_aws.rights.iam_resources import profile_arn

_ROLE, _PROFILE = "AWS::IAM::Role", "AWS::IAM::InstanceProfile"


def install() -> None:
    """Correct ministack's types."""
    _set_boundaries()
    _name_profiles()


def _set_boundaries() -> None:
    former = original(_ROLE)

    def create(logical_id: str, properties: Properties, stack_name: str) -> Created:
        created: Created = former["create"](logical_id, properties, stack_name)
        _limit(created[0], properties)
        return created

    def update(role: str, old: Properties, new: Properties, stack_name: str, logical_id: str) -> Created:
        updated: Created = former["update"](role, old, new, stack_name, logical_id)
        if old.get("PermissionsBoundary") and not new.get("PermissionsBoundary"):
            client("iam").delete_role_permissions_boundary(RoleName=role)
        _limit(role, new)
        return updated

    wrap(_ROLE, create=create, update=update)


def _limit(role: str, properties: Properties) -> None:
    if boundary := properties.get("PermissionsBoundary"):
        client("iam").put_role_permissions_boundary(RoleName=role, PermissionsBoundary=boundary)


def _name_profiles() -> None:
    """Convert names to ARNs for the engine's handler, and its ARNs to names."""
    handler = original(_PROFILE)

    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        arn, attributes = handler["create"](logical_id, properties, stack)
        return _name(arn), attributes

    def update(name: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        arn, attributes = handler["update"](profile_arn(name), old, new, stack, logical_id)
        return _name(arn), attributes

    def delete(name: str, properties: Properties) -> None:
        handler["delete"](profile_arn(name), properties)

    wrap(_PROFILE, create=create, update=update, delete=delete)


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]
