"""Scopes of permissions.tsv: resources, by prefix if they have one, and conditions."""

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import Aws

Conditions = dict[str, object]

# CloudFormation makes names from the stack, the logical id and a random part, and shortens long ones in an
# undocumented way. These limits are for stacks (128 characters) with ParallelCluster's ids and roles (64).
_LONGEST_IN_STACK, _KEPT_IN_STACK = 50, 40
_LONGEST_IN_ROLE, _KEPT_IN_ROLE = 12, 10

_CLUSTER_TAG = "parallelcluster:cluster-name"
_ATTACHABLE_AWS_POLICIES = (
    "CloudWatchAgentServerPolicy",
    "AmazonS3ReadOnlyAccess",
    "service-role/AWSLambdaBasicExecutionRole",
)
# EC2 uses both names in China; ParallelCluster's published policy has both everywhere.
_PASSED_TO = ("lambda.amazonaws.com", "ec2.amazonaws.com", "ec2.amazonaws.com.cn")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Resources and conditions of some actions: one statement of the role's policy."""

    name: str
    """Name in the table, and Sid of the statement."""
    resources: tuple[str, ...] = ("*",)
    conditions: Conditions | None = None
    any_resource: str = ""
    """Reason for every resource of the account; only with *."""
    of_types: bool = False
    """True if it allows only the actions of resource types that are in the cluster's template."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The provider's cluster; None leaves a scope out."""

    cluster_name: str
    scripts_bucket_arn: str
    permissions_boundary: str | None = None
    """ARN of the policy that must bound every role that the provider makes."""
    secret_arn: str | None = None
    """ARN of the secret with the accounting database's password, which the library looks up."""
    progress_parameter_arn: str | None = None
    """ARN of the SSM parameter with the provider's progress."""
    progress_log_group_arn: str | None = None
    """ARN of the log group of its steps, with `:*` for its streams, as LogGroup.log_group_arn returns it."""
    node_policies: tuple[str, ...] = ()
    iam_prefix: str | None = None
    """Iam.ResourcePrefix of overrides: a path, a name's beginning, or both."""


def scopes(target: Target) -> Iterator[Scope]:
    """Yield every scope of the table."""
    yield from _services(target)
    yield from _stacks(target.cluster_name)
    yield from _buckets(target.scripts_bucket_arn)
    yield from _login_nodes()
    yield from _roles(target)
    yield from _own_calls(target)
    yield from _managed()


def _arn(service: str, resource: str, *, region: str = Aws.REGION, account: str = Aws.ACCOUNT_ID) -> str:
    return f"arn:{Aws.PARTITION}:{service}:{region}:{account}:{resource}"


def _here() -> Conditions:
    return {"StringEquals": {"aws:RequestedRegion": Aws.REGION}}


def _services(target: Target) -> Iterator[Scope]:
    name = target.cluster_name
    # Log groups end with twelve digits, the time; with a * there, training's would cover training-2's.
    group = f"log-group:/aws/parallelcluster/{name}-{'?' * 12}"
    logs = [_arn("logs", group), _arn("logs", f"{group}:*")]
    # Names of functions and of their log groups end with the stack's id, which is unknown beforehand.
    function_logs = _arn("logs", "log-group:/aws/lambda/pcluster-*")
    functions = [_arn("lambda", f"function:{prefix}-*") for prefix in ("parallelcluster", "pcluster")]
    tables = [_arn("dynamodb", f"table/parallelcluster-{part}{name}") for part in ("", "slurm-")]
    yield Scope(name="Ec2", conditions=_here())
    yield Scope(name="Tables", resources=tuple(tables))
    yield Scope(name="HostedZones", any_resource="a zone's ARN has no name in it; ParallelCluster makes one")
    # A composite alarm can be made and described only with a right to all alarms.
    yield Scope(name="CloudWatch", conditions=_here())
    yield Scope(name="LogGroups", resources=(*logs, function_logs))
    yield Scope(name="AnyLogGroup", conditions=_here())
    yield Scope(name="ClusterLogs", resources=tuple(logs))
    yield Scope(name="Functions", resources=tuple(functions))
    yield Scope(name="Lustre", resources=(_arn("fsx", "*"),))
    yield Scope(name="Efs", resources=(_arn("elasticfilesystem", "*"),))
    yield Scope(name="ReservedCapacity", any_resource="a group has whatever name its owner gave it")
    # The library looks up a login pool's load balancer by its tags.
    yield Scope(name="TaggedResources", conditions=_here())
    if target.secret_arn:
        yield Scope(name="AccountingSecret", resources=(target.secret_arn,))


def _of_stacks(cluster_name: str) -> list[str]:
    """Return the patterns of the names of the cluster's stack and its nested stacks.

    They do not end in -*, or training's would cover training-2's.
    """
    named = cluster_name
    if len(cluster_name) > _LONGEST_IN_STACK:
        named = f"{cluster_name[:_KEPT_IN_STACK]}*"
    return [f"{cluster_name}/*", f"{named}-ComputeFleet*", f"{named}-LoginNodes*"]


def _of_function_roles(cluster_name: str) -> str:
    """Return the pattern of the names of the roles of ParallelCluster's cleanup functions."""
    if len(cluster_name) > _LONGEST_IN_ROLE:
        return f"{cluster_name[:_KEPT_IN_ROLE]}*"
    return f"{cluster_name}-Cleanup*"


def _stacks(cluster_name: str) -> Iterator[Scope]:
    stacks = tuple(_arn("cloudformation", f"stack/{pattern}") for pattern in _of_stacks(cluster_name))
    tagged: Conditions = {"ForAnyValue:StringEquals": {"aws:TagKeys": [_CLUSTER_TAG]}}
    yield Scope(name="WriteStacks", resources=stacks, conditions=tagged)
    yield Scope(name="Stacks", resources=stacks)
    yield Scope(name="AnyStack", any_resource="a list of stacks is of all stacks")


def _buckets(scripts: str) -> Iterator[Scope]:
    def bucket(name: str) -> tuple[str, ...]:
        return (f"arn:{Aws.PARTITION}:s3:::{name}",)

    yield Scope(name="LibraryBucket", resources=bucket("parallelcluster-*"))
    yield Scope(name="PublishedArtifacts", resources=bucket(f"{Aws.REGION}-aws-parallelcluster*"))
    yield Scope(name="Scripts", resources=(scripts, f"{scripts}/*"))


def _login_nodes() -> Iterator[Scope]:
    """Yield the scopes of login nodes, also for a cluster without any: deleting the nodes needs them, too.

    The published policy requires one tag; it was loosened when that broke (aws-parallelcluster issue 7491).
    """
    services = ["autoscaling.amazonaws.com", "elasticloadbalancing.amazonaws.com"]
    yield Scope(name="LoginNodeGroups", conditions=_here())
    yield Scope(name="LoginNodeBalancers", conditions=_here())
    # The first resource in an account makes AWS create its service-linked role.
    yield Scope(
        name="ServiceRoles",
        resources=(_arn("iam", "role/aws-service-role/*", region=""),),
        conditions={"StringEquals": {"iam:AWSServiceName": services}},
    )


def _managed() -> Iterator[Scope]:
    """Yield the scopes of storage and addresses that ParallelCluster makes for keys of overrides."""
    yield Scope(name="ManagedEc2", conditions=_here(), of_types=True)
    yield Scope(name="ManagedEfs", resources=(_arn("elasticfilesystem", "*"),), of_types=True)
    yield Scope(name="ManagedLustre", resources=(_arn("fsx", "*"),), of_types=True)
    services = ("elasticfilesystem.amazonaws.com", "fsx.amazonaws.com")
    roles = tuple(_arn("iam", f"role/aws-service-role/{each}/*", region="") for each in services)
    yield Scope(name="ManagedServiceRoles", resources=roles, of_types=True)


def node_roles(cluster_name: str, iam_prefix: str | None) -> tuple[str, ...]:
    """Return the patterns of the ARNs of the roles that ParallelCluster makes for a cluster's nodes."""
    return _own("role", cluster_name, iam_prefix)


def _own(kind: str, cluster_name: str, iam_prefix: str | None, *more: str) -> tuple[str, ...]:
    paths = [f"parallelcluster/{path}" for path in (*_of_stacks(cluster_name), *more)]
    if iam_prefix:
        paths.append(f"{iam_prefix.removeprefix('/')}*")
    return tuple(_arn("iam", f"{kind}/{path}", region="") for path in paths)


def _roles(target: Target) -> Iterator[Scope]:
    """Yield the scopes of IAM.

    Nodes' roles have the path /parallelcluster/<stack>/, functions' roles /parallelcluster/ alone. Any policy
    may be detached from them: one of `node_policies` that was left out is in no statement anymore.
    """

    cluster_name, permissions_boundary = target.cluster_name, target.permissions_boundary
    roles = _own("role", cluster_name, target.iam_prefix, _of_function_roles(cluster_name))
    named = [_arn("iam", f"{kind}/*", region="") for kind in ("role", "policy", "instance-profile")]
    attachable = [_arn("iam", "policy/parallelcluster*", region="")] + [
        _arn("iam", f"policy/{name}", region="", account="aws") for name in _ATTACHABLE_AWS_POLICIES
    ]
    attachable += target.node_policies
    bounded: Conditions = (
        {"StringEquals": {"iam:PermissionsBoundary": permissions_boundary}} if permissions_boundary else {}
    )
    yield Scope(name="ReadIam", resources=(*named, _arn("iam", "policy/*", region="", account="aws")))
    yield Scope(name="Roles", resources=roles)
    yield Scope(name="BoundedRoles", resources=roles, conditions=bounded or None)
    if bounded:
        # Without it a bounded provider could create and use a role without a boundary.
        yield Scope(name="Bound", resources=roles, conditions=bounded)
    yield Scope(
        name="RolePolicies",
        resources=roles,
        conditions={"ArnLike": {"iam:PolicyARN": attachable}, **bounded},
    )
    profiles = _own("instance-profile", cluster_name, target.iam_prefix)
    yield Scope(name="InstanceProfiles", resources=profiles)
    yield Scope(
        name="PassRoles",
        resources=roles,
        conditions={"StringEqualsIfExists": {"iam:PassedToService": list(_PASSED_TO)}},
    )


def _own_calls(target: Target) -> Iterator[Scope]:
    """Yield the scopes of the provider's own calls: progress, logs of a failure, running jobs."""
    name = target.cluster_name
    instances = (_arn("ec2", "instance/*"),)
    yield Scope(name="OwnStack", resources=(Aws.STACK_ID,))
    yield Scope(name="SavedLogs", resources=(f"{target.scripts_bucket_arn}/logs/{name}/*",))
    yield Scope(
        name="ClusterInstances",
        resources=instances,
        conditions={"StringEquals": {f"aws:ResourceTag/{_CLUSTER_TAG}": name}},
    )
    yield Scope(name="CommandDocument", resources=(_arn("ssm", "document/AWS-RunShellScript", account=""),))
    yield Scope(
        name="CommandInstances",
        resources=instances,
        conditions={"StringEquals": {f"ssm:resourceTag/{_CLUSTER_TAG}": name}},
    )
    yield Scope(name="CommandResults", any_resource="IAM has no resources for it")
    if target.progress_parameter_arn:
        yield Scope(name="ProgressParameter", resources=(target.progress_parameter_arn,))
    if target.progress_log_group_arn:
        yield Scope(name="ProgressLog", resources=(target.progress_log_group_arn,))
