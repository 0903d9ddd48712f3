"""CloudFormation's schemas of resource types, from cfn-lint."""

from collections.abc import Iterable
from typing import Any


def resource_schema(type_: str) -> dict[str, Any]:
    """Return the schema of a resource type in us-east-1."""
    # Its import takes most of a second of each worker that collects a test.
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]  # noqa: PLC0415

    schema: dict[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", type_).schema
    return schema


def create_only(type_: str) -> set[tuple[str, ...]]:
    """Return the paths of the properties whose change replaces a resource of this type."""
    paths = resource_schema(type_).get("createOnlyProperties", [])
    return {tuple(path.removeprefix("/properties/").split("/")) for path in paths}


def values_at(properties: dict[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Return the values that there are at these paths, by path."""
    found = {}
    for path in sorted(paths):
        value: Any = properties
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[".".join(path)] = value
    return found
