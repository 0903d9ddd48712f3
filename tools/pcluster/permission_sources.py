"""The source of the table of permissions that a person brings: the published policy."""

from pathlib import Path

import yaml

# The published policies for clusters. The others are for AWS Batch, images, logs and FSx with S3.
_POLICIES = (
    "ParallelClusterClusterPolicy1",
    "ParallelClusterClusterPolicy2",
    "DefaultParallelClusterIamAdminPolicy",
)


class SourceError(Exception):
    """A source is not available, or differs from the table. The message has the remedy."""


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
