"""What the provider may do: ParallelCluster's published policy, narrowed to what we deploy.

Source: `cloudformation/policies/parallelcluster-policies.yaml` of aws-parallelcluster (statements
ParallelClusterClusterPolicy1 and 2, DefaultParallelClusterIamAdminPolicy), without AWS Batch and
image builds, and with `s3:*`, `fsx:*` and `elasticfilesystem:*` written out. ParallelCluster creates
its stack with the caller's rights, so these cover the cluster's resources too, not only the library's
own calls. Not proven on real AWS.
"""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

_EC2 = """
AllocateAddress AssociateAddress AttachNetworkInterface AuthorizeSecurityGroupEgress
AuthorizeSecurityGroupIngress CreateFleet CreateLaunchTemplate CreateLaunchTemplateVersion
CreateNetworkInterface CreatePlacementGroup CreateSecurityGroup CreateSnapshot CreateTags CreateVolume
DeleteLaunchTemplate DeleteNetworkInterface DeletePlacementGroup DeleteSecurityGroup DeleteTags
DeleteVolume Describe* DisassociateAddress ModifyLaunchTemplate ModifyNetworkInterfaceAttribute
ModifyVolume ModifyVolumeAttribute ReleaseAddress RevokeSecurityGroupEgress
RevokeSecurityGroupIngress RunInstances TerminateInstances
"""
_DYNAMODB = """
CreateTable DeleteTable DescribeTable GetItem ListTagsOfResource PutItem Query TagResource UntagResource
UpdateItem
"""
_ROUTE53 = """
ChangeResourceRecordSets ChangeTagsForResource CreateHostedZone DeleteHostedZone GetChange GetHostedZone
ListQueryLoggingConfigs ListResourceRecordSets
"""
_CLOUDWATCH = """
DeleteAlarms DeleteDashboards DescribeAlarms GetDashboard ListDashboards PutCompositeAlarm PutDashboard
PutMetricAlarm
"""
_LOGS = """
CreateLogGroup DeleteLogGroup DeleteMetricFilter DescribeLogGroups DescribeMetricFilters ListTagsForResource
PutMetricFilter PutRetentionPolicy TagResource UntagResource
"""
_LAMBDA = """
AddPermission CreateFunction DeleteFunction GetFunction GetFunctionConfiguration InvokeFunction ListTags
RemovePermission TagResource UntagResource UpdateFunctionConfiguration
"""
_S3_OWN = """
CreateBucket DeleteBucketPolicy DeleteObject DeleteObjectVersion GetBucketLocation GetBucketPolicy
GetBucketVersioning GetEncryptionConfiguration GetObject GetObjectVersion ListBucket ListBucketVersions
PutBucketPolicy PutBucketTagging PutBucketVersioning PutEncryptionConfiguration PutLifecycleConfiguration
PutObject PutObjectTagging
"""
_CLOUDFORMATION_READ = """
DeleteStack DescribeStackEvents DescribeStackResource DescribeStackResources DescribeStacks GetTemplate
"""
_FSX = "DescribeDataRepositoryAssociations DescribeFileSystems ListTagsForResource"
_EFS = "DescribeFileSystems DescribeMountTargetSecurityGroups DescribeMountTargets"
# Of login nodes: an auto-scaling group behind a network load balancer.
_AUTOSCALING = """
CreateAutoScalingGroup DeleteAutoScalingGroup DeleteLifecycleHook DescribeAutoScalingGroups
DescribeLifecycleHooks DescribeScalingActivities PutLifecycleHook UpdateAutoScalingGroup
"""
_LOAD_BALANCING = """
AddTags CreateListener CreateLoadBalancer CreateTargetGroup DeleteListener DeleteLoadBalancer
DeleteTargetGroup DescribeListeners DescribeLoadBalancers DescribeTags DescribeTargetGroups
DescribeTargetHealth ModifyLoadBalancerAttributes
"""
_IAM_READ = "GetInstanceProfile GetPolicy GetRole GetRolePolicy SimulatePrincipalPolicy"
_IAM_ROLE = "DeleteRole TagRole UntagRole"
_IAM_BOUNDED = "CreateRole DeleteRolePolicy PutRolePolicy"
_IAM_PROFILE = (
    "AddRoleToInstanceProfile CreateInstanceProfile DeleteInstanceProfile RemoveRoleFromInstanceProfile"
)
_ATTACHABLE_AWS_POLICIES = (
    "CloudWatchAgentServerPolicy",
    "AmazonSSMManagedInstanceCore",
    "AmazonS3ReadOnlyAccess",
    "service-role/AWSLambdaBasicExecutionRole",
)


def _arn(service: str, resource: str, *, region: str = Aws.REGION, account: str = Aws.ACCOUNT_ID) -> str:
    return f"arn:{Aws.PARTITION}:{service}:{region}:{account}:{resource}"


def _allow(
    sid: str, service: str, actions: str, *resources: str, conditions: dict[str, object] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        actions=[f"{service}:{action}" for action in actions.split()],
        resources=list(resources) or ["*"],
        conditions=conditions,
    )


def provider_statements(
    *, scripts_bucket_arn: str, cluster_name: str, permissions_boundary: str | None, secret_arn: str | None
) -> list[iam.PolicyStatement]:
    """All statements of the provider's role, for one cluster.

    Args:
        permissions_boundary: ARN of the policy that must bound every role that the provider makes.
        secret_arn: of the accounting database's password, which the library looks up.
    """
    here: dict[str, object] = {"StringEquals": {"aws:RequestedRegion": Aws.REGION}}
    return [
        _allow("Ec2", "ec2", _EC2, conditions=here),
        _allow("DynamoDb", "dynamodb", _DYNAMODB, _arn("dynamodb", "table/parallelcluster-*")),
        # Hosted zones have no name in their ARN; ParallelCluster makes one a cluster.
        _allow("Route53", "route53", _ROUTE53),
        _allow("CloudWatch", "cloudwatch", _CLOUDWATCH, conditions=here),
        _allow("Logs", "logs", _LOGS, conditions=here),
        _allow("ListStacks", "cloudformation", "ListStacks"),
        *_stack_statements(cluster_name),
        _allow(
            "Functions",
            "lambda",
            _LAMBDA,
            _arn("lambda", "function:parallelcluster-*"),
            _arn("lambda", "function:pcluster-*"),
        ),
        _allow("LibraryBucket", "s3", _S3_OWN, f"arn:{Aws.PARTITION}:s3:::parallelcluster-*"),
        _allow(
            "PublishedArtifacts",
            "s3",
            "GetObject ListBucket",
            f"arn:{Aws.PARTITION}:s3:::{Aws.REGION}-aws-parallelcluster*",
        ),
        _allow(
            "Scripts",
            "s3",
            "GetBucketLocation GetObject ListBucket",
            scripts_bucket_arn,
            f"{scripts_bucket_arn}/*",
        ),
        _allow("Lustre", "fsx", _FSX, _arn("fsx", "*")),
        _allow("Efs", "elasticfilesystem", _EFS, _arn("elasticfilesystem", "*")),
        *([_allow("AccountingSecret", "secretsmanager", "DescribeSecret", secret_arn)] if secret_arn else []),
        *_login_node_statements(here),
        _allow("ReservedCapacity", "resource-groups", "GetGroupConfiguration ListGroupResources"),
        *_iam_statements(permissions_boundary),
    ]


def _stack_statements(cluster_name: str) -> list[iam.PolicyStatement]:
    # The cluster's stack, and its nested stacks, whose names start with it and a hyphen.
    stacks = [_arn("cloudformation", f"stack/{cluster_name}{rest}") for rest in ("/*", "-*")]
    tagged: dict[str, object] = {
        "ForAnyValue:StringEquals": {"aws:TagKeys": ["parallelcluster:cluster-name"]}
    }
    return [
        _allow(
            "WriteStacks", "cloudformation", "CreateStack UpdateStack TagResource", *stacks, conditions=tagged
        ),
        _allow("ReadAndDeleteStacks", "cloudformation", _CLOUDFORMATION_READ, *stacks),
    ]


def _login_node_statements(here: dict[str, object]) -> list[iam.PolicyStatement]:
    """Always, not only with login nodes: they must also be able to go.

    The published policy asks that no other tag is set; ours and ParallelCluster's own are.
    """
    services = ["autoscaling.amazonaws.com", "elasticloadbalancing.amazonaws.com"]
    return [
        _allow("LoginNodeGroups", "autoscaling", _AUTOSCALING, conditions=here),
        _allow("LoginNodeBalancers", "elasticloadbalancing", _LOAD_BALANCING, conditions=here),
        # The first of an account makes AWS's own role for it.
        _allow(
            "LoginNodeServiceRoles",
            "iam",
            "CreateServiceLinkedRole",
            _arn("iam", "role/aws-service-role/*", region=""),
            conditions={"StringEquals": {"iam:AWSServiceName": services}},
        ),
    ]


def _iam_statements(permissions_boundary: str | None) -> list[iam.PolicyStatement]:
    roles = _arn("iam", "role/parallelcluster/*", region="")
    anything_named = [
        _arn("iam", f"{kind}/*", region="") for kind in ("role", "policy", "instance-profile")
    ] + [_arn("iam", "policy/*", region="", account="aws")]
    attachable = [_arn("iam", "policy/parallelcluster*", region="")] + [
        _arn("iam", f"policy/{name}", region="", account="aws") for name in _ATTACHABLE_AWS_POLICIES
    ]
    bounded: dict[str, object] = (
        {"StringEquals": {"iam:PermissionsBoundary": permissions_boundary}} if permissions_boundary else {}
    )
    # Without it a bounded provider could make a role without bounds, and use that.
    may_bound = ["PutRolePermissionsBoundary"] if permissions_boundary else []
    return [
        _allow("ReadIam", "iam", _IAM_READ, *anything_named),
        _allow("Roles", "iam", _IAM_ROLE, roles),
        _allow(
            "BoundedRoles", "iam", " ".join([_IAM_BOUNDED, *may_bound]), roles, conditions=bounded or None
        ),
        _allow(
            "RolePolicies",
            "iam",
            "AttachRolePolicy DetachRolePolicy",
            roles,
            conditions={"ArnLike": {"iam:PolicyARN": attachable}, **bounded},
        ),
        _allow(
            "InstanceProfiles",
            "iam",
            _IAM_PROFILE,
            _arn("iam", "instance-profile/parallelcluster/*", region=""),
        ),
        _allow(
            "PassRoles",
            "iam",
            "PassRole",
            roles,
            conditions={
                "StringEqualsIfExists": {"iam:PassedToService": ["lambda.amazonaws.com", "ec2.amazonaws.com"]}
            },
        ),
    ]
