"""The rights that CloudFormation's handlers need for a resource: actions from permissions.tsv, on its ARN."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rehearsal.local_aws.rights import iam_resources, instances
from rehearsal.local_aws.rights.need import Context, Need, arn, bounded
from training_cluster.permissions.table import load

OPERATIONS = {
    "create": frozenset({"create", "read", "tagging"}),
    "update": frozenset({"update", "read", "tagging"}),
    "delete": frozenset({"delete"}),
}
"""Handlers that CloudFormation calls for an operation on a resource; it reads attributes after a change."""

# Actions that a handler calls only for a property. Its declaration lists the actions of all properties.
_ONLY_FOR = {
    ("AWS::DynamoDB::Table", "s3:"): "ImportSourceSpecification",
    ("AWS::DynamoDB::Table", "logs:"): "ImportSourceSpecification",
    ("AWS::DynamoDB::Table", "iam:"): "ImportSourceSpecification",
    ("AWS::Lambda::Function", "elasticfilesystem:"): "FileSystemConfigs",
    ("AWS::CloudFormation::Stack", "iam:"): "RoleARN",
    ("AWS::IAM::Role", "iam:PutRolePermissionsBoundary"): "PermissionsBoundary",
}
_SERVICE_ROLES = {"AWS::AutoScaling::AutoScalingGroup": "autoscaling.amazonaws.com"}
_PASSED_TO = {"AWS::Lambda::Function": "lambda.amazonaws.com"}
# Services with an ARN for each resource: prefix of its name, and the property with the name.
_NAMED = {
    "cloudformation": ("stack/", "StackName"),
    "dynamodb": ("table/", "TableName"),
    "lambda": ("function:", "FunctionName"),
}
_ANY_LOG_GROUP = {"DescribeLogGroups", "DescribeResourcePolicies"}
_LOG_GROUP_TAGS = {"TagResource", "UntagResource", "ListTagsForResource"}
# Random part of a name that CloudFormation generates.
_RANDOM = "A1B2C3D4E5F6"


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a stack, before its handler runs."""

    type: str
    logical_id: str
    physical_id: str
    """Empty before the creation."""
    stack: str
    properties: dict[str, Any] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    """Names beside the properties in the template, such as UpdatePolicy."""

    def name(self, key: str) -> str:
        """Return the name that a property sets or CloudFormation generates."""
        return str(
            self.physical_id or self.properties.get(key) or f"{self.stack}-{self.logical_id}-{_RANDOM}"
        )

    @property
    def tag_keys(self) -> list[str]:
        """Keys of the tags in the properties."""
        tags = self.properties.get("Tags") or []
        return [str(each.get("Key")) for each in tags if isinstance(each, dict)]


def needs(resource: Resource, operation: str) -> list[Need]:
    """Return the rights for an operation (create, update, delete) on a resource."""
    if resource.type.startswith("Custom::") or resource.type == "AWS::CloudFormation::CustomResource":
        # CloudFormation calls the function behind a custom resource as the caller of the stack's operation.
        return [Need(action="lambda:InvokeFunction", resource=str(resource.properties.get("ServiceToken")))]
    found: list[Need] = []
    for action in _actions(resource.type, operation):
        if _is_needed(resource, action):
            found += _on(resource, action)
    if operation != "delete":  # a property for which the table leaves an action out: no policy allows it
        keys = {*_keys(resource.properties), *resource.attributes}
        found += [Need(action=action) for action, unset in _left_out(resource.type) if keys & unset]
    return found


@cache
def _left_out(type_: str) -> tuple[tuple[str, frozenset[str]], ...]:
    rows = [row for row in load() if type_ in row.unset]
    return tuple((row.action, frozenset(row.unset[type_])) for row in rows)


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys at any depth."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(each)


@cache
def _actions(type_: str, operation: str) -> tuple[str, ...]:
    taken: list[str] = []
    for row in load():
        for words in row.types:
            name, _, handlers = words.partition(" ")
            if row.scopes and name == type_ and OPERATIONS[operation] & set(handlers.split(",")):
                taken.append(row.action)
    return tuple(taken)


def _is_needed(resource: Resource, action: str) -> bool:
    if action == "s3:GetObjectVersion":
        return "S3ObjectVersion" in (resource.properties.get("Code") or {})
    return all(
        property_ in resource.properties
        for (type_, prefix), property_ in _ONLY_FOR.items()
        if type_ == resource.type and action.startswith(prefix)
    )


def _on(resource: Resource, action: str) -> Iterator[Need]:
    if action == "iam:PassRole":
        to = _PASSED_TO.get(resource.type, "ec2.amazonaws.com")
        for role in _passed_roles(resource):
            yield Need(action=action, resource=role, context={"iam:PassedToService": to})
    elif action == "iam:CreateServiceLinkedRole":
        service = _SERVICE_ROLES[resource.type]
        role = arn("iam", f"role/aws-service-role/{service}/*", region="")
        yield Need(action=action, resource=role, context={"iam:AWSServiceName": service})
    elif action.startswith("iam:"):
        yield from _iam(resource, action)
    else:
        tags: Context = {"aws:TagKeys": resource.tag_keys} if resource.tag_keys else {}
        yield Need(action=action, resource=_arn(resource, action), context=tags)


def _arn(resource: Resource, action: str) -> str:
    service, _, name = action.partition(":")
    properties = resource.properties
    if service == "s3":
        code = properties.get("Code") or {}
        return f"arn:aws:s3:::{code.get('S3Bucket')}/{code.get('S3Key')}"
    if service == "cloudformation" and resource.physical_id:
        return resource.physical_id
    if service == "logs" and name not in _ANY_LOG_GROUP:
        group = properties.get("LogGroupName") or resource.name("LogGroupName")
        return arn("logs", f"log-group:{group}{'' if name in _LOG_GROUP_TAGS else ':log-stream:'}")
    prefix, key = _NAMED.get(service, ("", ""))
    return arn(service, prefix + resource.name(key)) if prefix else "*"


def _iam(resource: Resource, action: str) -> Iterator[Need]:
    properties = resource.properties
    path = properties.get("Path", "/")
    if resource.type == "AWS::IAM::InstanceProfile":
        name = resource.name("InstanceProfileName")
        known = iam_resources.profile_arn(name)
        made = arn("iam", f"instance-profile{path}{name}", region="")
        yield Need(action=action, resource=known if resource.physical_id else made)
    elif resource.type == "AWS::IAM::Policy":
        for role in properties.get("Roles", []):
            yield Need(
                action=action, resource=iam_resources.role_arn(role), context=iam_resources.boundary(role)
            )
    else:
        name = resource.name("RoleName")
        known, made = iam_resources.role_arn(name), arn("iam", f"role{path}{name}", region="")
        role, context = (
            known if resource.physical_id else made,
            bounded(properties.get("PermissionsBoundary")),
        )
        if action in {"iam:AttachRolePolicy", "iam:DetachRolePolicy"}:
            for policy in properties.get("ManagedPolicyArns", []):
                yield Need(action=action, resource=role, context={**context, "iam:PolicyARN": policy})
        else:
            yield Need(action=action, resource=role, context=context)


def _passed_roles(resource: Resource) -> list[str]:
    properties = resource.properties
    if resource.type == "AWS::Lambda::Function":
        return [properties["Role"]]
    if resource.type == "AWS::IAM::InstanceProfile":
        return [iam_resources.role_arn(name) for name in properties.get("Roles", [])]
    template = properties.get("LaunchTemplate") or {}
    profile = properties.get("IamInstanceProfile") or instances.profile_of_template(
        template.get("LaunchTemplateSpecification", template)
    )
    return iam_resources.roles_of_profile(profile)
