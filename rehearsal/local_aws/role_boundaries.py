"""Permissions boundaries of roles that CloudFormation makes, which ministack leaves out.

The judge of rights reads them for conditions on iam:PermissionsBoundary.
"""

from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties

_TYPE = "AWS::IAM::Role"


def install() -> None:
    """Set the boundary of each role that a stack creates or updates."""
    former = handlers.original(_TYPE)

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

    handlers.wrap(_TYPE, create=create, update=update)


def _limit(role: str, properties: Properties) -> None:
    if boundary := properties.get("PermissionsBoundary"):
        client("iam").put_role_permissions_boundary(RoleName=role, PermissionsBoundary=boundary)
