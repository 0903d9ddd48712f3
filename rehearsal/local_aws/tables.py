"""DynamoDB tables that are protected against deletion, which CloudFormation cannot delete either."""

from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.emulators.moto_types import Properties

_TYPE = "AWS::DynamoDB::Table"


def install() -> None:
    """Refuse the deletion of a protected table."""
    tables, delete = hooks.find(ministack_hooks.TABLES), handlers.original(_TYPE)["delete"]

    def delete_unprotected(physical_id: str, properties: Properties) -> None:
        if (tables.get(physical_id) or {}).get("DeletionProtectionEnabled"):
            raise ValueError(
                f"Resource cannot be deleted as it is currently protected against deletion: {physical_id}. "
                "Disable deletion protection first."
            )
        delete(physical_id, properties)

    handlers.wrap(_TYPE, delete=delete_unprotected)
