"""Managed policies for the nodes' roles, which ParallelCluster makes: it takes further policies by ARN."""

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from training_cluster.acknowledgements import acknowledge_wildcards
from training_cluster.cluster.nodes import bootstrap_prefix

# Actions of SSM's agent for a session and for a command: AWS's AmazonSSMManagedInstanceCore without two
# groups. The first is ssm:GetParameter and GetParameters, which cover every parameter there: the private keys
# that CloudFormation makes (/ec2/keypair/*), and other teams' secrets; a job on a compute node has its node's
# rights. The second is State Manager, inventory, compliance and patches, which nothing here uses.
SESSION_ACTIONS = (
    # Sessions and commands reach only nodes that report themselves.
    "ssm:UpdateInstanceInformation",
    # Sessions; AWSCloud9SSMInstanceProfile, AWS's policy for these alone, has these five. A newer agent gets
    # commands this way, too (guide, "Reference: ec2messages, ssmmessages, and other API operations").
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
    # Commands of an older agent, which a custom image may have. The provider lists jobs with them.
    "ec2messages:AcknowledgeMessage",
    "ec2messages:DeleteMessage",
    "ec2messages:FailMessage",
    "ec2messages:GetEndpoint",
    "ec2messages:GetMessages",
    "ec2messages:SendReply",
)

# Amazon ECR, "Private registry authentication" and "Repository policies": what pulling an image takes.
PULL_ACTIONS = (
    *("ecr:GetAuthorizationToken", "ecr:BatchCheckLayerAvailability"),
    *("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"),
)
# Key of that item: DB_KEY of pcluster/models/compute_fleet_status_manager.py.
_FLEET_STATUS = "COMPUTE_FLEET"
# A multipart upload that fails is aborted: its parts would cost, unseen.
_WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload")


def nodes_policy_arn(scope: Construct, cluster_name: str) -> str:
    """Let every node answer Session Manager and Run Command, and pull from the registries of ECR."""
    policy = _policy(scope, "NodesPolicy", name=f"{cluster_name}-nodes", statements=_of_every_node())
    acknowledge_wildcards(policy, ["*"], "a channel has no ARN; a repository's owner decides who may pull")
    return policy.managed_policy_arn


def _of_every_node() -> list[iam.PolicyStatement]:
    return [
        # A channel has no ARN, and AWS's own policies have no other resource for these.
        iam.PolicyStatement(actions=list(SESSION_ACTIONS), resources=["*"]),
        # AWS's own images are in accounts of AWS. The policy of a repository decides about other accounts.
        iam.PolicyStatement(actions=list(PULL_ACTIONS), resources=["*"]),
    ]


def attach_to_own_roles(
    scope: Construct,
    cluster_name: str,
    bucket: s3.IBucket,
    roles: Sequence[str],
    *,
    topic: str | None = None,
) -> iam.ManagedPolicy:
    """Attach what our scripts need to roles of the user's: ParallelCluster attaches nothing to them.

    Args:
        roles: ARNs of the roles.
        topic: name of the topic of jobs; None if they send no mail.
    """
    scripts, datasets = (
        bucket.arn_for_objects(f"{bootstrap_prefix(cluster_name)}/*"),
        bucket.arn_for_objects("datasets/*"),
    )
    policy = _policy(
        scope,
        "OwnRolesPolicy",
        name=f"{cluster_name}-own-roles",
        statements=[
            *_of_every_node(),
            iam.PolicyStatement(actions=["s3:GetObject"], resources=[scripts, datasets]),
            iam.PolicyStatement(actions=list(_WRITE_ACTIONS), resources=[datasets]),
            *_publish(topic),
        ],
    )
    for number, arn in enumerate(roles):
        policy.attach_to_role(iam.Role.from_role_arn(scope, f"OwnRole{number}", arn))
    reason = "the same that the nodes' own roles have"
    acknowledge_wildcards(policy, ["*", scripts, datasets], reason)
    return policy


def login_policy_arn(scope: Construct, cluster_name: str, bucket: s3.IBucket) -> str:
    """Let login nodes read their scripts; the others have S3Access for it, which login nodes lack."""
    scripts = bucket.arn_for_objects(f"{bootstrap_prefix(cluster_name)}/*")
    policy = _policy(
        scope,
        "LoginPolicy",
        name=f"{cluster_name}-login",
        statements=[iam.PolicyStatement(actions=["s3:GetObject"], resources=[scripts])],
    )
    acknowledge_wildcards(policy, [scripts], "this cluster's scripts, all of them")
    return policy.managed_policy_arn


def datasets_policy_arn(
    scope: Construct, cluster_name: str, bucket: s3.IBucket, *, topic: str | None = None
) -> str:
    """Let compute nodes upload prepared data to the bucket and download it, and their jobs send mail.

    It lets them delete nothing. The rights of jobs' mail and the fleet's status are here, since a role takes
    ten policies.

    S3Access is no way: EnableWriteAccess gives s3:*, old versions included (ParallelCluster 3.16.1), and an
    update would see a change each time, since it tells the entries of a bucket apart by its name only.
    """
    datasets = bucket.arn_for_objects("datasets/*")
    policy = _policy(
        scope,
        "DatasetsPolicy",
        name=f"{cluster_name}-datasets",
        statements=[
            iam.PolicyStatement(actions=["s3:GetObject", *_WRITE_ACTIONS], resources=[datasets]),
            *_publish(topic),
            _keep_fleet_status(cluster_name),
        ],
    )
    acknowledge_wildcards(policy, [datasets], "data sets of all workloads, whose names are the users'")
    return policy.managed_policy_arn


def buckets_policy_arn(
    scope: Construct, cluster_name: str, *, readable: Sequence[str], writable: Sequence[str]
) -> str:
    """Let nodes list and read buckets, and write to some, each whole or below a prefix; delete nothing.

    Args:
        readable: BUCKET or BUCKET/PREFIX, `writable` included.
        writable: BUCKET or BUCKET/PREFIX.
    """
    statements = [
        *(_list_statement(each) for each in readable),
        iam.PolicyStatement(actions=["s3:GetObject"], resources=[_objects(each) for each in readable]),
    ]
    if writable:
        written = [_objects(each) for each in writable]
        statements.append(iam.PolicyStatement(actions=list(_WRITE_ACTIONS), resources=written))
    policy = _policy(scope, "BucketsPolicy", name=f"{cluster_name}-buckets", statements=statements)
    acknowledge_wildcards(
        policy, [_objects(each) for each in readable], "read_buckets and write_buckets name them"
    )
    return policy.managed_policy_arn


def metrics_policy_arn(
    scope: Construct,
    cluster_name: str,
    *,
    workspace_arn: str | None,
    topic: str | None,
    webhook_secret_arn: str | None,
) -> str:
    """Let the head node send metrics and alerts, to one place at least.

    Args:
        workspace_arn: workspace of metrics=amp.
        topic: name of the SNS topic of alarm_email.
        webhook_secret_arn: secret with the address of the webhook.
    """
    rights = {
        "aps:RemoteWrite": workspace_arn,
        "sns:Publish": _topic_arn(topic) if topic else None,
        "secretsmanager:GetSecretValue": webhook_secret_arn,
    }
    statements = [
        iam.PolicyStatement(actions=[action], resources=[arn]) for action, arn in rights.items() if arn
    ]
    policy = _policy(scope, "MetricsPolicy", name=f"{cluster_name}-metrics", statements=statements)
    return policy.managed_policy_arn


def _topic_arn(name: str) -> str:
    return f"arn:{Aws.PARTITION}:sns:{Aws.REGION}:{Aws.ACCOUNT_ID}:{name}"


def _publish(topic: str | None) -> list[iam.PolicyStatement]:
    """Allow messages to one topic."""
    if topic is None:
        return []
    return [iam.PolicyStatement(actions=["sns:Publish"], resources=[_topic_arn(topic)])]


def _keep_fleet_status(cluster_name: str) -> iam.PolicyStatement:
    """Deny writes of the item with the status of the compute fleet, by which a job would stop all nodes.

    ParallelCluster lets each compute node write all items of the table (ComputeNodeIamResources in
    pcluster/templates/cdk_builder_utils.py, 3.16.1). Nodes need to write CLUSTER_CONFIG.<instance> only
    (cookbook, aws-parallelcluster-slurm/libraries/dynamo.rb).
    """
    table = f"arn:{Aws.PARTITION}:dynamodb:{Aws.REGION}:{Aws.ACCOUNT_ID}:table/parallelcluster-{cluster_name}"
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["dynamodb:PutItem", "dynamodb:UpdateItem"],
        resources=[table],
        conditions={"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": [_FLEET_STATUS]}},
    )


def _list_statement(entry: str) -> iam.PolicyStatement:
    bucket, _, prefix = entry.strip("/").partition("/")
    below = {"StringLike": {"s3:prefix": [prefix, f"{prefix}/*"]}} if prefix else None
    return iam.PolicyStatement(
        actions=["s3:ListBucket"], resources=[f"arn:{Aws.PARTITION}:s3:::{bucket}"], conditions=below
    )


def _objects(entry: str) -> str:
    return f"arn:{Aws.PARTITION}:s3:::{entry.strip('/')}/*"


def _policy(
    scope: Construct, id_: str, *, name: str, statements: list[iam.PolicyStatement]
) -> iam.ManagedPolicy:
    return iam.ManagedPolicy(
        scope,
        id_,
        # The provider may attach policies of this name only. A cluster's name has 60 characters at most, so
        # it stays under a policy's 128; a policy is global, so the region is in it.
        managed_policy_name=f"parallelcluster-{name}-{Aws.REGION}",
        # No description: a change of it replaces the policy, which a fixed name does not allow.
        statements=statements,
    )
