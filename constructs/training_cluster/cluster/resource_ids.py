"""Ids and names of the resources that a cluster config refers to. They may be CDK tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from training_cluster.catalog.ports import MYSQL_PORT
from training_cluster.flags.settings import Settings

_FLAG_OF = {"node_security_group_id": "security_group_id", "lustre_id": "fsx_id"}
"""Flags of existing resources, by the field of ResourceIds, where the names differ."""


@dataclass(frozen=True, kw_only=True)
class Database:
    """MySQL database of Slurm's accounting."""

    uri: str
    """Address of the database as host:port."""
    user: str
    secret_arn: str
    """ARN of the Secrets Manager secret with the password as plain text."""


def existing_database(settings: Settings) -> Database | None:
    """Return the database of accounting=HOST[:PORT]; None with accounting=off or new."""
    if settings.accounting in ("off", "new"):
        return None
    host, _, port = settings.accounting.partition(":")
    assert settings.accounting_secret, "the rules require it"
    return Database(
        uri=f"{host}:{port or MYSQL_PORT}",
        user=settings.accounting_user,
        secret_arn=settings.accounting_secret,
    )


@dataclass(frozen=True, kw_only=True)
class ResourceIds:
    """Ids and names for one cluster config. Names of the cluster's own policies end with _policy_arn."""

    region: str
    public_subnet_id: str
    private_subnet_id: str
    node_security_group_id: str
    key_name: str
    lustre_id: str
    efs_id: str
    bucket_name: str
    nodes_policy_arn: str
    """Policy that lets every node answer Session Manager and Run Command."""
    datasets_policy_arn: str
    """Policy that lets compute nodes upload data sets to the bucket and download them."""
    bootstrap_budget_s: int
    """Most seconds that our bootstrap steps may take on a compute node."""
    bundle_sha256: str = ""
    """Checksum of the bundle; empty while the bundle is still to be built from the config."""
    image_id: str | None = None
    """AMI of the queues with image=build, and of the flags' queue; None for ParallelCluster's own."""
    placement_group_name: str | None = None
    """Name of the new placement group of the flags' queue; None when it needs none."""
    more_placement_groups: Mapping[str, str] = field(default_factory=dict)
    """Names of the new placement groups of other queues, by queue."""
    login_policy_arn: str | None = None
    """Policy that lets login nodes read their scripts; None without login nodes."""
    metrics_policy_arn: str | None = None
    """Policy that lets the head node send metrics and alerts; None if it sends none."""
    topology_policy_arn: str | None = None
    """Policy that lets the head node ask EC2 where nodes are; None with topology=off."""
    buckets_policy_arn: str | None = None
    """Policy of read_buckets and write_buckets; None without them."""
    users_role_name: str = ""
    """Role of the people who share the cluster."""
    own_policy_arns: tuple[str, ...] = ()
    """Policies of every node in addition to ours: node_policies, and the buckets' policy."""
    database: Database | None = None
    """Database of Slurm's accounting; None with accounting=off."""

    @classmethod
    def own_policies(cls) -> dict[str, str]:
        """Return the construct of each policy that TrainingClusterStack makes, by field.

        The policy of nodes_policy_arn is NodesPolicy.
        """
        names = [each.name for each in fields(cls) if each.name.endswith("_policy_arn")]
        return {name: name.removesuffix("_arn").title().replace("_", "") for name in names}

    def new_placement_group(self, queue: str) -> str | None:
        """Return the name of the new placement group of a queue; None when it needs none."""
        return self.more_placement_groups.get(queue, self.placement_group_name)


def with_existing(ids: ResourceIds, settings: Settings) -> ResourceIds:
    """Return ids with those of existing resources that flags name."""
    flags = {each.name: _FLAG_OF.get(each.name, each.name) for each in fields(ids)}
    given = {name: getattr(settings, flag, None) for name, flag in flags.items()}
    given["database"] = existing_database(settings)
    return replace(ids, **{name: value for name, value in given.items() if value})


PLACEHOLDERS = ResourceIds(
    region="us-east-1",
    public_subnet_id="subnet-0aaaaaaaaaaaaaaaa",
    private_subnet_id="subnet-0bbbbbbbbbbbbbbbb",
    node_security_group_id="sg-0cccccccccccccccc",
    key_name="training-key",
    lustre_id="fs-0dddddddddddddddd",
    efs_id="fs-0eeeeeeeeeeeeeeee",
    bucket_name="bucket",
    nodes_policy_arn="arn:aws:iam::123456789012:policy/parallelcluster-nodes",
    datasets_policy_arn="arn:aws:iam::123456789012:policy/parallelcluster-datasets",
    bundle_sha256="e" * 64,
    bootstrap_budget_s=0,
    placement_group_name="group-0ffffffffffffffff",
    users_role_name="users",
    login_policy_arn="arn:aws:iam::123456789012:policy/parallelcluster-login",
    metrics_policy_arn="arn:aws:iam::123456789012:policy/parallelcluster-metrics",
    topology_policy_arn="arn:aws:iam::123456789012:policy/parallelcluster-topology",
    buckets_policy_arn="arn:aws:iam::123456789012:policy/parallelcluster-buckets",
    database=Database(
        uri=f"database.example.com:{MYSQL_PORT}",
        user="slurm",
        secret_arn="arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf",  # noqa: S106
    ),
)
"""Ids of the right form for everything, to check a config before any resource exists."""


def network_subnets(settings: Settings) -> set[str]:
    """Return the subnets of the network in a config before the deploy, without those of some nodes alone."""
    ids = with_existing(PLACEHOLDERS, settings)
    return {ids.public_subnet_id, ids.private_subnet_id}
