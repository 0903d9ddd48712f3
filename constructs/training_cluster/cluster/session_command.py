"""Commands of the cluster's user on the head node, through Session Manager and Run Command."""

from __future__ import annotations

# The user that owns a ParallelCluster node, by the first word of its os (pcluster.constants.OS_MAPPING).
_USERS = {"alinux": "ec2-user", "rhel": "ec2-user", "ubuntu": "ubuntu", "rocky": "rocky"}

RUN_AS_USER = (
    "user=$(sed -n 's/^cfn_cluster_user=//p' /etc/parallelcluster/cfnconfig) && "
    'exec sudo --set-home --user "${user:?is not in cfnconfig}" -- '
    "bash --login -c 'cd && exec \"$@\"' trainctl "
)
"""Beginning of a script for Run Command, which runs the words that follow as the cluster's user.

ParallelCluster names the user (ubuntu, ec2-user) in cfnconfig. That file has lists of bash, so it is not
sourced: the agent runs scripts with `sh`, which is dash on Ubuntu and ends with a syntax error there. The
login shell has Slurm on its PATH. sudo passes the words unchanged; its own --login would expand a $ in them.
"""


def cluster_user(os: str) -> str | None:
    """Name the user that owns nodes of an operating system (ParallelCluster's name); None if unknown."""
    return next((user for begins, user in _USERS.items() if os.startswith(begins)), None)


def start_session_command(*, region: str, instance_id: str, user: str) -> str:
    """Build the command for a shell.

    A session without a document runs `sh` as ssm-user, who owns no job and has no Slurm on the PATH:
    ParallelCluster sets the PATH in /etc/profile.d, which only login shells read.
    """
    return (
        f"aws ssm start-session --region {region} --target {instance_id} "
        f'--document-name AWS-StartInteractiveCommand --parameters command="sudo --login --user {user}"'
    )
