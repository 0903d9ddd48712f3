"""Sources of the table of permissions: the CloudFormation registry and the published policy."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.exceptions import BotoCoreError, ClientError

Schema = dict[str, Any]
ReadSchema = Callable[[str], Schema]
"""Function that returns the schema of a resource type."""
# The published policies for clusters. The others are for AWS Batch, images, logs and FSx with S3.
_POLICIES = (
    "ParallelClusterClusterPolicy1",
    "ParallelClusterClusterPolicy2",
    "DefaultParallelClusterIamAdminPolicy",
)


class SourceError(Exception):
    """A source is not available, or differs from the table. The message has the remedy."""


def read_schemas_from(folder: Path) -> ReadSchema:
    """Read schemas from a folder's JSON files, by their type names. Raises SourceError."""
    schemas = {}
    for path in sorted(folder.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        schemas[schema.get("typeName")] = schema

    def read(name: str) -> Schema:
        if name not in schemas:
            raise SourceError(
                f"{folder} has no schema of {name}.\n"
                f"  type: aws cloudformation describe-type --type RESOURCE --type-name {name} "
                f"--query Schema --output text > {folder}/{name.replace('::', '-')}.json"
            )
        return dict(schemas[name])

    return read


def read_schema_from_registry(name: str) -> Schema:
    """Read a schema from the CloudFormation registry with the current credentials. Raises SourceError."""
    try:
        answer = boto3.client("cloudformation").describe_type(Type="RESOURCE", TypeName=name)
    except (BotoCoreError, ClientError) as error:
        raise SourceError(
            f"The CloudFormation registry does not answer: {error}\n"
            "  It needs an AWS account: cloudformation:DescribeType, a region and credentials.\n"
            "  type: aws sts get-caller-identity, and then this command again;\n"
            "  or, with local schemas: python -m tools.pcluster.permissions_table types --schemas FOLDER"
        ) from None
    schema: Schema = json.loads(answer["Schema"])
    return schema


class _Template(yaml.SafeLoader):
    """A loader that reads CloudFormation's short forms as None, since they are not needed."""


_Template.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


def published_statements(file: Path) -> list[tuple[str, str]]:
    """Read ParallelCluster's published policy: each Sid and action, wildcards included."""
    template = yaml.load(file.read_text(encoding="utf-8"), Loader=_Template)  # noqa: S506  # a safe one
    statements = [
        statement
        for name in _POLICIES
        for statement in template["Resources"][name]["Properties"]["PolicyDocument"]["Statement"]
    ]
    return [(each.get("Sid", "without a Sid"), action) for each in statements for action in each["Action"]]
