"""Managed policies for the nodes' roles, which ParallelCluster makes: it takes further policies by ARN."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from training_cluster.acknowledgements import acknowledge_wildcards
from training_cluster.cluster.nodes import USERS_PREFIX, bootstrap_prefix
from training_cluster.flags.settings import Settings
from training_cluster.overrides.nodes import COMPUTE, HEAD, LOGIN
from training_cluster.stack_names import jobs_topic, rules_topic

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


# Tag of a session of users_role (users_role.py), which credentials.py of a node sets to the name of the user.
USER = "${aws:PrincipalTag/user}"


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Rights of nodes that the app's scripts and the flags need, as statements by purpose."""

    settings: Settings
    bucket: s3.IBucket
    users_role: iam.IRole | None = None
    """Role of the people who share the cluster; None for a cluster of one user."""

    @property
    def scripts(self) -> list[iam.PolicyStatement]:
        """Right to read the cluster's scripts."""
        scripts = self.bucket.arn_for_objects(f"{bootstrap_prefix(self.settings.cluster_name)}/*")
        return [iam.PolicyStatement(actions=["s3:GetObject"], resources=[scripts])]

    @property
    def of_every_node(self) -> list[iam.PolicyStatement]:
        """Rights of every node: sessions, and to pull images, unless users have this right themselves."""
        # A channel has no ARN, and AWS's own policies have no other resource for these.
        sessions = iam.PolicyStatement(actions=list(SESSION_ACTIONS), resources=["*"])
        return [sessions] if self.users_role else [sessions, self._pull]

    @property
    def of_users(self) -> list[iam.PolicyStatement]:
        """Rights of a user's jobs on a cluster that several people share."""
        settings, bucket = self.settings, self.bucket
        own = f"{USERS_PREFIX}/{USER}/*"
        secrets = _arn("secretsmanager", f"secret:training-cluster/{settings.cluster_name}/{USER}/*")
        return [
            iam.PolicyStatement(actions=["s3:GetObject"], resources=[bucket.arn_for_objects("datasets/*")]),
            iam.PolicyStatement(
                actions=["s3:GetObject", *_WRITE_ACTIONS], resources=[bucket.arn_for_objects(own)]
            ),
            iam.PolicyStatement(
                actions=["s3:ListBucket"],
                resources=[bucket.bucket_arn],
                conditions={"StringLike": {"s3:prefix": own}},
            ),
            _allow("secretsmanager:GetSecretValue", secrets),
            self._pull,
            *self._mail,
            *self.buckets,
        ]

    @property
    def _pull(self) -> iam.PolicyStatement:
        # AWS's own images are in accounts of AWS. The policy of a repository decides about other accounts.
        return iam.PolicyStatement(actions=list(PULL_ACTIONS), resources=["*"])

    @property
    def _mail(self) -> list[iam.PolicyStatement]:
        topic = jobs_topic(self.settings.cluster_name)
        return [_allow("sns:Publish", _arn("sns", topic))] if self.settings.job_emails else []

    @property
    def datasets(self) -> list[iam.PolicyStatement]:
        """Rights of compute nodes to upload and download prepared data, and of their jobs to send mail.

        Where several people share the cluster: to begin sessions of users alone. FSx imports datasets/ with
        the owners that an upload names, so no user may write there.
        """
        if self.users_role:
            actions = ["sts:AssumeRole", "sts:TagSession"]
            return [iam.PolicyStatement(actions=actions, resources=[self.users_role.role_arn])]
        datasets = self.bucket.arn_for_objects("datasets/*")
        data = iam.PolicyStatement(actions=["s3:GetObject", *_WRITE_ACTIONS], resources=[datasets])
        return [data, *self._mail]

    @property
    def fleet(self) -> list[iam.PolicyStatement]:
        """Refusal of writes of the fleet's status, which a job could otherwise do with its node's role."""
        return [_keep_fleet_status(self.settings.cluster_name)]

    @property
    def buckets(self) -> list[iam.PolicyStatement]:
        """Rights of `read_buckets` and `write_buckets`: to list, read and write, never to delete."""
        readable, writable = self.settings.readable_buckets, self.settings.writable_buckets
        if not readable:
            return []
        objects = [_objects(each) for each in readable]
        reads = iam.PolicyStatement(actions=["s3:GetObject"], resources=objects)
        statements = [*(_list_statement(each) for each in readable), reads]
        if writable:
            written = [_objects(each) for each in writable]
            statements.append(iam.PolicyStatement(actions=list(_WRITE_ACTIONS), resources=written))
        return statements

    @property
    def metrics(self) -> list[iam.PolicyStatement]:
        """Rights of a head node that sends metrics or alerts."""
        settings = self.settings
        if not settings.head_node_sends:
            return []
        allowed = {
            "aps:RemoteWrite": settings.metrics_workspace,
            "sns:Publish": _arn("sns", rules_topic(settings.cluster_name)) if settings.alarm_email else None,
            "secretsmanager:GetSecretValue": settings.alert_webhook_secret,
        }
        return [_allow(action, arn) for action, arn in allowed.items() if arn]

    @property
    def topology(self) -> list[iam.PolicyStatement]:
        """Right of the head node to ask where instances are (services/topology.py)."""
        asks = iam.PolicyStatement(actions=["ec2:DescribeInstanceTopology"], resources=["*"])
        return [] if self.settings.topology == "off" else [asks]


def attach_to_own_roles(
    scope: Construct, rights: Rights, roles: Mapping[str, Collection[str]]
) -> list[iam.ManagedPolicy]:
    """Attach to roles of the user's what our scripts and flags need: ParallelCluster attaches nothing.

    Args:
        roles: kinds of nodes (overrides/nodes.py) of each role, by its ARN.
    """
    jobs = [*rights.scripts, *rights.datasets]
    more = {
        HEAD: (
            [*rights.scripts, *rights.metrics, *rights.topology],
            [arn for arn, of in roles.items() if HEAD in of],
        ),
        LOGIN: (rights.scripts, [arn for arn, of in roles.items() if LOGIN in of]),
        COMPUTE: (
            [*jobs, *rights.fleet],
            [arn for arn, of in roles.items() if COMPUTE in of and HEAD not in of],
        ),
        # The daemon of the head node writes the fleet's status with its role.
        "Shared": ([*jobs, *rights.topology], [arn for arn, of in roles.items() if {HEAD, COMPUTE} <= {*of}]),
    }
    imported = {
        arn: iam.Role.from_role_arn(scope, f"OwnRole{number}", arn) for number, arn in enumerate(roles)
    }
    policies = []
    for kind, (statements, arns) in more.items():
        if arns:
            name = f"{rights.settings.cluster_name}-own-{kind.lower()}"
            buckets = [] if kind == COMPUTE and rights.users_role else rights.buckets
            of_all = [*rights.of_every_node, *statements, *buckets]
            why = "the same that the nodes' own roles have"
            policy = _policy(scope, f"Own{kind}Policy", name=name, statements=of_all, why=why)
            for arn in arns:
                policy.attach_to_role(imported[arn])
            policies.append(policy)
    return policies


def own_policy_arns(scope: Construct, rights: Rights) -> dict[str, Any]:
    """Make the policies of the cluster's nodes, without those that would be empty, by field of ResourceIds.

    S3Access is no way to data sets: EnableWriteAccess gives s3:*, old versions included (ParallelCluster
    3.16.1), and an update would see a change each time, since it tells the entries of a bucket apart by its
    name only.
    """
    policies = {
        # Every node answers Session Manager and Run Command, and pulls from the registries of ECR.
        "Nodes": (rights.of_every_node, "a channel has no ARN; a repository's owner decides who may pull"),
        # The other nodes have S3Access for it, which login nodes lack.
        "Login": (
            rights.scripts if rights.settings.login_nodes else [],
            "this cluster's scripts, all of them",
        ),
        # The fleet's status is here, too, since a role takes ten policies.
        "Datasets": (
            [*rights.datasets, *rights.fleet],
            "data sets of all workloads, whose names are the users'",
        ),
        "Buckets": (rights.buckets, "read_buckets and write_buckets name them"),
        "Metrics": (rights.metrics, "each names one resource"),
        "Topology": (rights.topology, "EC2 has no resource for this call"),
    }
    found = {}
    for purpose, (statements, why) in policies.items():
        if statements:
            name = f"{rights.settings.cluster_name}-{purpose.lower()}"
            policy = _policy(scope, f"{purpose}Policy", name=name, statements=statements, why=why)
            found[f"{purpose.lower()}_policy_arn"] = policy.managed_policy_arn
    return found


def _arn(service: str, resource: str) -> str:
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"


def _allow(action: str, arn: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=[action], resources=[arn])


def _keep_fleet_status(cluster_name: str) -> iam.PolicyStatement:
    """Deny writes of the item with the status of the compute fleet, by which a job would stop all nodes.

    ParallelCluster lets each compute node write all items of the table (ComputeNodeIamResources in
    pcluster/templates/cdk_builder_utils.py, 3.16.1). Nodes need to write CLUSTER_CONFIG.<instance> only
    (cookbook, aws-parallelcluster-slurm/libraries/dynamo.rb).
    """
    table = _arn("dynamodb", f"table/parallelcluster-{cluster_name}")
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
    scope: Construct, id_: str, *, name: str, statements: list[iam.PolicyStatement], why: str
) -> iam.ManagedPolicy:
    policy = iam.ManagedPolicy(
        scope,
        id_,
        # The provider may attach policies of this name only. A cluster's name has 60 characters at most, so
        # it stays under a policy's 128; a policy is global, so the region is in it.
        managed_policy_name=f"parallelcluster-{name}-{Aws.REGION}",
        # No description: a change of it replaces the policy, which a fixed name does not allow.
        statements=statements,
    )
    acknowledge_wildcards(policy, [each for of in statements for each in of.resources], why)
    return policy
