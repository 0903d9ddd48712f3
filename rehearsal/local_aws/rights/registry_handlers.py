"""The rights that CloudFormation's handlers need for a resource: the actions that they declare, on its ARN.

permissions.tsv, which makes the policy, only takes actions away here: those that its column left_out gives a
reason for, for a type. An action or a type that it does not have is needed, and so denied.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rehearsal.local_aws.rights import iam_resources, instances
from rehearsal.local_aws.rights.need import Context, Need, arn, bounded
from rehearsal.local_aws.rights.registry_schemas import UnknownTypeError, handlers
from training_cluster.permissions.table import load

OPERATIONS = {
    "create": frozenset({"create", "read", "tagging"}),
    "update": frozenset({"update", "read", "tagging"}),
    "delete": frozenset({"delete"}),
}
"""Handlers that CloudFormation calls for an operation on a resource; it reads attributes after a change."""

_SERVICE_ROLES = {
    "AWS::AutoScaling::AutoScalingGroup": "autoscaling.amazonaws.com",
    "AWS::EFS::FileSystem": "elasticfilesystem.amazonaws.com",
    "AWS::FSx::FileSystem": "fsx.amazonaws.com",
}
_BUCKETS_ROLE = "s3.data-source.lustre.fsx.amazonaws.com"
_FILE_SYSTEMS = ("elasticfilesystem", "fsx")
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
    try:
        declared = _declared(resource.type, operation)
    except UnknownTypeError:  # an action that no role has
        return [Need(action=f"undeclared:{resource.type}")]
    present = {*_keys(resource.properties), *resource.attributes}
    return [
        need
        for action, only_for in declared
        if only_for is None or only_for & present
        for need in _on(resource, action)
    ]


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys at any depth."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(each)


@cache
def _declared(type_: str, operation: str) -> tuple[tuple[str, frozenset[str] | None], ...]:
    """Return the actions of an operation's handlers, and the properties that alone call for each."""
    of_handlers, rows = handlers(type_), {row.action: row for row in load()}
    found = []
    for action in dict.fromkeys(each for actions in of_handlers.values() for each in actions):
        called = {name for name, actions in of_handlers.items() if action in actions}
        row = rows.get(action)
        only_for = row.unset.get(type_) if row and type_ in row.type_names else None
        # A property that no policy allows to change is refused at the creation.
        refused = only_for and row and not row.scopes and operation == "create" and "update" in called
        if (called & OPERATIONS[operation] or refused) and not (row and row.excuses(type_)):
            found.append((action, frozenset(only_for) if only_for else None))
    return tuple(found)


def _on(resource: Resource, action: str) -> Iterator[Need]:
    if action == "iam:PassRole":
        to = _PASSED_TO.get(resource.type, "ec2.amazonaws.com")
        for role in _passed_roles(resource):
            yield Need(action=action, resource=role, context={"iam:PassedToService": to})
    elif action.startswith("iam:") and (service := _service_role(resource, action)):
        role = arn("iam", f"role/aws-service-role/{service}/*", region="")
        yield Need(action=action, resource=role, context={"iam:AWSServiceName": service})
    elif action.startswith("iam:"):
        yield from _iam(resource, action)
    else:
        tags: Context = {"aws:TagKeys": resource.tag_keys} if resource.tag_keys else {}
        yield Need(action=action, resource=_arn(resource, action), context=tags)


def _service_role(resource: Resource, action: str) -> str | None:
    """Return the service whose role AWS makes for a resource; Lustre has another for a bucket."""
    of_bucket = resource.type.startswith("AWS::FSx::") and action != "iam:CreateServiceLinkedRole"
    if of_bucket or resource.type == "AWS::FSx::DataRepositoryAssociation":
        return _BUCKETS_ROLE
    return _SERVICE_ROLES.get(resource.type)


def _arn(resource: Resource, action: str) -> str:
    service, _, name = action.partition(":")
    properties = resource.properties
    if service == "s3":
        code = properties.get("Code") or {}
        code_key = f"{code.get('S3Bucket')}/{code.get('S3Key')}"
        return f"arn:aws:s3:::{_linked_bucket(properties) or code_key}"
    if service == "cloudformation" and resource.physical_id:
        return resource.physical_id
    if service in _FILE_SYSTEMS:
        return arn(service, f"file-system/{properties.get('FileSystemId') or resource.physical_id or '*'}")
    if service == "logs" and name not in _ANY_LOG_GROUP:
        group = properties.get("LogGroupName") or resource.name("LogGroupName")
        return arn("logs", f"log-group:{group}{'' if name in _LOG_GROUP_TAGS else ':log-stream:'}")
    prefix, key = _NAMED.get(service, ("", ""))
    other = str(properties.get("KmsKeyId", "*")) if service == "kms" else "*"
    return arn(service, prefix + resource.name(key)) if prefix else other


def _linked_bucket(properties: dict[str, Any]) -> str:
    """Return the bucket that a Lustre file system or an association links; empty if there is none."""
    lustre = properties.get("LustreConfiguration") or {}
    path = str(
        properties.get("DataRepositoryPath") or lustre.get("ImportPath") or lustre.get("ExportPath") or ""
    )
    return path.removeprefix("s3://").partition("/")[0]


def _iam(resource: Resource, action: str) -> Iterator[Need]:
    properties = resource.properties
    path = properties.get("Path", "/")
    if resource.type == "AWS::IAM::InstanceProfile":
        name = resource.name("InstanceProfileName")
        known = iam_resources.profile_arn(name)
        made = arn("iam", f"instance-profile{path}{name}", region="")
        yield Need(action=action, resource=known if resource.physical_id else made)
    elif resource.type == "AWS::IAM::Policy" and action.endswith("RolePolicy"):
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
