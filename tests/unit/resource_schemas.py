"""CloudFormation's schemas of resource types, from cfn-lint."""

from typing import Any


def resource_schema(type_: str) -> dict[str, Any]:
    """Return the schema of a resource type in us-east-1."""
    # Its import takes most of a second of each worker that collects a test.
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]  # noqa: PLC0415

    schema: dict[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", type_).schema
    return schema
