"""Pure renderer of the ParallelCluster 3 cluster config from settings, catalog and resource ids.

The keys are ParallelCluster's own (`HeadNode.Networking.SubnetId` ...), so the result is the one
plain dict that crosses a module border here.

The keys that a cluster can never change (head node type and volume, bootstrap script and arguments, head
node timeout) depend on the family, base.yaml and the flags of the same name only, never on nodes, capacity,
image or workload; test_config.py renders pairs and checks that.
"""

from dataclasses import replace

from training_cluster.catalog.families import load_base
from training_cluster.cluster.nodes import (
    BUNDLE_ARGUMENT,
    USERS_ARGUMENT,
    Rendered,
    bootstrap_action,
    has_accounting,
    iam,
    managed_policies,
    root_volume,
    scripts_url,
)
from training_cluster.cluster.queues import bill_accelerators, render_queue, with_single_threads
from training_cluster.cluster.resource_ids import ResourceIds
from training_cluster.directory.file import read_directory
from training_cluster.flags.account import CLUSTER_TAG, split_list
from training_cluster.flags.settings import Settings
from training_cluster.overrides.file import read_overrides
from training_cluster.overrides.merge import merge
from training_cluster.overrides.nodes import with_groups, with_own_roles
from training_cluster.overrides.storage import with_retention
from training_cluster.problems import ConfigurationError

HOME = "/home"
JOB_SETTINGS: Rendered = {
    # Slurm's default, stated: a job whose node was lost is queued again. ParallelCluster's own slurm.conf has
    # EnforcePartLimits=ALL, which refuses a job that exceeds a partition: repeating it only logs an error.
    "JobRequeue": 1,
    # The first word is ParallelCluster's: its line is replaced. A job that is queued again would wait 71 s
    # (AuthInfo=cred_expire), then up to 60 s for the scheduler's turn (batch_requeue_fini, sched_interval).
    "SchedulerParameters": "nohold_on_prolog_fail,requeue_delay=6,sched_interval=5,bf_interval=10",
    # Refused starts in a job's life after which Slurm holds it, by default 4: of 512 fresh nodes often one is
    # unhealthy, and a run has weeks. Each costs minutes of nodes, and the brake of the checks comes before.
    "MaxBatchRequeue": 50,
    # Ranks save a checkpoint between SIGTERM and SIGKILL.
    "KillWait": load_base().kill_wait_s,
    # By default a node's health checks run with the job's first step there, so after the start of the batch
    # script. With these, the script starts once the checks of all nodes have passed. Without Contain: before
    # Slurm 26.11, its step hides a job whose script a restarted slurmctld forgot during the checks, and which
    # otherwise is queued again when its first node registers next, at most some 25 minutes later.
    "PrologFlags": "Alloc,DeferBatch",
}
"""Settings of slurm.conf for the jobs of every cluster."""
SEVERAL_USERS_SETTINGS: Rendered = JOB_SETTINGS | {
    # pam_slurm_adopt puts a user's SSH session into the step that Contain makes. What that costs: see above.
    "PrologFlags": "Alloc,DeferBatch,Contain",
    # Ports of srun and salloc, whose messages are signed: assets/bootstrap/peers.sh opens them to all nodes.
    # Linux gives no other program one of them by itself (32768 to 60999).
    "SrunPortRange": "61000-65000",
}
"""The same for a cluster with users of a file or a directory."""
SHARED_CLUSTER_SETTINGS = {
    # A user of no account submits no job, and no job exceeds a limit of the file of users or evades the
    # budget (a QOS) of its account. safe: a job starts only if its time limit fits into what is left of the
    # budget, and no job is killed for it. Reports of GPU hours need GPUs to be counted.
    "AccountingStorageEnforce": "associations,limits,qos,safe",
    "AccountingStorageTRES": "gres/gpu",
    # Who has had less than their share comes first; then who has waited longer. Use of a week ago
    # counts half.
    "PriorityType": "priority/multifactor",
    "PriorityWeightFairshare": 100_000,
    "PriorityWeightAge": 1_000,
    "PriorityDecayHalfLife": "7-0",
}
"""Settings of slurm.conf for a cluster that several people share, with accounting."""


def render_cluster_config(*, settings: Settings, ids: ResourceIds) -> Rendered:
    """Render the final cluster config, from the flags and their files, for `pcluster.lib.create_cluster`."""
    base, ids = load_base(), replace(ids, own_policy_arns=_own_policies(settings, ids))
    # Users have the buckets' rights themselves.
    of_queues = replace(ids, own_policy_arns=settings.own_policies) if settings.has_users else ids
    config: Rendered = {
        "Region": ids.region,
        "Image": {"Os": settings.os_name},
        "Imds": {"ImdsSupport": "v2.0"},
        "HeadNode": _head_node(settings, ids),
        "Scheduling": {
            "Scheduler": "slurm",
            "SlurmSettings": _slurm_settings(settings, ids),
            "SlurmQueues": [
                render_queue(
                    queue,
                    cluster_name=settings.cluster_name,
                    ids=of_queues,
                    has_users=settings.has_users,
                )
                for queue in settings.all_queues
            ],
        },
        "SharedStorage": _shared_storage(settings, ids),
        "Monitoring": {"Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": base.log_retention_days}}},
        "DevSettings": {
            "Timeouts": {
                "HeadNodeBootstrapTimeout": base.head_node.bootstrap_timeout_s,
                "ComputeNodeBootstrapTimeout": base.compute_node.boot_s + ids.bootstrap_budget_s,
            }
        },
        "Tags": [
            {"Key": key, "Value": value}
            for key, value in {CLUSTER_TAG: settings.cluster_name, **settings.own_tags}.items()
        ],
    }
    if settings.permissions_boundary:
        config["Iam"] = {"PermissionsBoundary": settings.permissions_boundary}
    if settings.login_nodes:
        config["LoginNodes"] = {"Pools": [_login_pool(settings, ids)]}
    if settings.detailed_monitoring == "on":
        config["Monitoring"]["DetailedMonitoring"] = True
    if settings.head_image:
        config["HeadNode"]["Image"] = {"CustomAmi": settings.head_image}
    if settings.security_groups:
        config = with_groups(config, split_list(settings.security_groups))
    if settings.directory:
        config["DirectoryService"] = read_directory(settings.directory).rendered()
    given: Rendered = {}
    if settings.overrides:
        given = read_overrides(settings.overrides).uploaded(scripts_url(settings.cluster_name, ids))
    if settings.users and has_accounting(merge(config, given)):
        config["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"].append(dict(SHARED_CLUSTER_SETTINGS))
        bill_accelerators(config["Scheduling"]["SlurmQueues"])
    return _with_overrides(config, given, settings) if given else config


def _own_policies(settings: Settings, ids: ResourceIds) -> tuple[str, ...]:
    buckets = ids.buckets_policy_arn if settings.readable_buckets else None
    return (*settings.own_policies, *([buckets] if buckets else []))


def _with_overrides(config: Rendered, given: Rendered, settings: Settings) -> Rendered:
    merged = merge(config, given)
    _check_timeouts(config, merged, settings)
    return with_groups(with_own_roles(with_retention(with_single_threads(merged))))


def _check_timeouts(ours: Rendered, merged: Rendered, settings: Settings) -> None:
    """Refuse time limits of the nodes' bootstrap below what our own steps may take."""
    given = merged["DevSettings"]["Timeouts"]
    for key, least in ours["DevSettings"]["Timeouts"].items() if isinstance(given, dict) else ():
        seconds = given.get(key)
        if seconds is None or (isinstance(seconds, int) and seconds < least):
            raise ConfigurationError(
                f"overrides={settings.overrides}: DevSettings.Timeouts.{key}: {seconds}: our own steps may "
                f"take {least} s\n    allowed: {least} or more, for your own scripts that take longer"
            )


def _head_node(settings: Settings, ids: ResourceIds) -> Rendered:
    name = settings.cluster_name
    # Compute nodes read it here: services/credentials.py.
    users = [f"{USERS_ARGUMENT}{ids.users_role_name}"] if settings.has_users else []
    return {
        "InstanceType": settings.head_type,
        "Networking": _open_to_us(ids, SubnetId=_entry_subnet_id(settings, ids)),
        "Ssh": {"KeyName": ids.key_name},
        "LocalStorage": root_volume(settings.head_root_gib or settings.family_facts.head_root_gib),
        "Imds": {"Secured": True},
        "Iam": iam(name, ids, *_head_policies(settings, ids)),
        "CustomActions": {
            "OnNodeConfigured": bootstrap_action(name, ids),
            # A live change: another checksum runs the script again on the head node, nothing else.
            # All nodes read the checksum here: see bootstrap.sh.
            "OnNodeUpdated": bootstrap_action(name, ids, f"{BUNDLE_ARGUMENT}{ids.bundle_sha256}", *users),
        },
    }


def _head_policies(settings: Settings, ids: ResourceIds) -> list[str]:
    metrics = ids.metrics_policy_arn if settings.head_node_sends else None
    topology = ids.topology_policy_arn if settings.topology != "off" else None
    return [arn for arn in (metrics, topology) if arn]


def _login_pool(settings: Settings, ids: ResourceIds) -> Rendered:
    login = load_base().login_node
    # Login nodes take no S3Access, only policies.
    scripts = [ids.login_policy_arn] if ids.login_policy_arn else []
    return {
        "Name": "login",
        "InstanceType": settings.login_type,
        "Count": settings.login_nodes,
        "GracetimePeriod": login.grace_min,
        "Networking": _open_to_us(ids, SubnetIds=[_entry_subnet_id(settings, ids)]),
        "Iam": {"AdditionalIamPolicies": managed_policies(ids, *scripts)},
        "CustomActions": {"OnNodeConfigured": bootstrap_action(settings.cluster_name, ids)},
    }


def _entry_subnet_id(settings: Settings, ids: ResourceIds) -> str:
    """Return the subnet of head and login nodes."""
    return ids.public_subnet_id if settings.public_access == "on" else ids.private_subnet_id


def _open_to_us(ids: ResourceIds, **subnet: object) -> Rendered:
    # Our own group, since ParallelCluster's opens port 22 to the world.
    return {**subnet, "SecurityGroups": [ids.node_security_group_id]}


def _slurm_settings(settings: Settings, ids: ResourceIds) -> Rendered:
    idle_min = load_base().scaledown_idle_min if settings.idle_minutes is None else settings.idle_minutes
    rendered: Rendered = {
        "ScaledownIdletime": idle_min,
        "CustomSlurmSettings": [dict(SEVERAL_USERS_SETTINGS if settings.has_users else JOB_SETTINGS)],
    }
    if settings.accounting != "off" and ids.database:
        rendered["Database"] = {
            "Uri": ids.database.uri,
            "UserName": ids.database.user,
            "PasswordSecretArn": ids.database.secret_arn,
        }
    return rendered


def _shared_storage(settings: Settings, ids: ResourceIds) -> list[Rendered]:
    """Render the mounts, which are the same for every family since they can hardly change later.

    A file system can be mounted only once, so with home=efs the folder /efs is a link into it.
    """
    base = load_base()
    return [
        {
            "Name": "shared",
            "StorageType": "FsxLustre",
            "MountDir": base.shared_dir,
            "FsxLustreSettings": {"FileSystemId": ids.lustre_id},
        },
        {
            "Name": "efs",
            "StorageType": "Efs",
            "MountDir": HOME if settings.home == "efs" else base.efs_dir,
            "EfsSettings": {"FileSystemId": ids.efs_id, "EncryptionInTransit": True},
        },
    ]
