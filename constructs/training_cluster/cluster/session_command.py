"""Command that opens a shell of the cluster's user on the head node through Session Manager."""

from __future__ import annotations

# The user that owns a ParallelCluster node, by the first word of its os (pcluster.constants.OS_MAPPING).
_USERS = {"alinux": "ec2-user", "rhel": "ec2-user", "ubuntu": "ubuntu", "rocky": "rocky"}


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
