"""DynamoDB tables that are protected against deletion, which CloudFormation cannot delete either."""

from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Properties

_TYPE = "AWS::DynamoDB::Table"


def install() -> None:
    """Refuse the deletion of a protected table."""
    delete = handlers.original(_TYPE)["delete"]

    def delete_unprotected(physical_id: str, properties: Properties) -> None:
        if _is_protected(physical_id):
            raise ValueError(
                f"Resource cannot be deleted as it is currently protected against deletion: {physical_id}. "
                "Disable deletion protection first."
            )
        delete(physical_id, properties)

    handlers.wrap(_TYPE, delete=delete_unprotected)


def _is_protected(name: str) -> bool:
    tables = client("dynamodb")
    try:
        return bool(tables.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"))
    except tables.exceptions.ResourceNotFoundException:  # it is already deleted
        return False
