"""Ids of the stacks, which you type to the CDK, and their names in CloudFormation. It imports no CDK.

The names begin with the app's: `cdk deploy` updates any stack of the same name, whoever made it.
"""

_OURS = "TrainingCluster"

NETWORK_STACK = f"{_OURS}-Network"
STORAGE_STACK = f"{_OURS}-Storage"
ACCOUNTING_STACK = f"{_OURS}-Accounting"
IMAGE_STACKS = f"{_OURS}-Image-"
"""Beginning of the name of each ImageStack: there is one for each image recipe and operating system."""
CLUSTER_STACK = f"{_OURS}Stack"
"""Id of a cluster's own stack, and its name for the default `cluster_name` and the former one."""
IMAGE_ID = "ImageStack"

STACK_IDS = {
    NETWORK_STACK: "NetworkStack",
    STORAGE_STACK: "StorageStack",
    ACCOUNTING_STACK: "AccountingStack",
}
"""Id of each shared stack, by its name in CloudFormation."""
GUARD_TYPE = "Custom::Guard"
"""CloudFormation's type of the resource with the guarded values of a stack."""
DEFAULT_CLUSTER = "traincluster"
"""A name that nobody has, and short enough for exact names of IAM roles (permissions/scopes.py)."""
FORMER_DEFAULT = "training"
"""Default of earlier releases. Its stack is that of the default, since no stack can be renamed: an account
has one of the two clusters."""


def cluster_stack(cluster_name: str) -> str:
    """Name the stack of a cluster as CloudFormation does."""
    is_default = cluster_name in (DEFAULT_CLUSTER, FORMER_DEFAULT)
    return CLUSTER_STACK if is_default else f"{CLUSTER_STACK}-{cluster_name}"


def new_key_pair(cluster_name: str) -> str:
    """Name the key pair that a cluster's stack creates without the flag key_name."""
    return f"{cluster_name}-key"


def destroy_command(cluster_name: str) -> str:
    """Return the CDK's command that destroys a cluster's own stack. It needs no other flag."""
    flag = "" if cluster_name == DEFAULT_CLUSTER else f" -c cluster_name={cluster_name}"
    return f"npx cdk destroy {CLUSTER_STACK}{flag}"


def cluster_of_stack(stack_name: str) -> str | None:
    """Find the cluster that a stack of this name belongs to; None for another stack."""
    if stack_name == CLUSTER_STACK:
        return DEFAULT_CLUSTER
    prefix = f"{CLUSTER_STACK}-"
    return stack_name.removeprefix(prefix) if stack_name.startswith(prefix) else None


def is_taken(name: str) -> bool:
    """Return True if a stack of this app, or the CDK's own, may have this name, in whatever case."""
    lower = name.lower()
    prefixes = (f"{_OURS}-".lower(), f"{CLUSTER_STACK}-".lower())
    return lower in {CLUSTER_STACK.lower(), "cdktoolkit"} or lower.startswith(prefixes)


def progress_parameter(stack_name: str) -> str:
    """Name the SSM parameter with the progress of a cluster, which assets/cluster_provider/record.py writes.

    Args:
        stack_name: name of our stack: two stacks with the same cluster name must not share a record.
    """
    return f"/training-cluster/stacks/{stack_name}/progress"


def jobs_topic(cluster_name: str) -> str:
    """Name the SNS topic that a cluster's jobs publish to, with job_emails."""
    return f"TrainingCluster_{cluster_name}_Jobs"


def rules_topic(cluster_name: str) -> str:
    """Name the SNS topic of a cluster with Prometheus, which its head node publishes to."""
    # No cluster's name has an underscore, so no topic of another cluster has this name.
    return f"TrainingCluster_{cluster_name}_Alarms"
