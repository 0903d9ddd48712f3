"""The command that opens a shell of the cluster's user on the head node, by Session Manager."""

from __future__ import annotations

# The user that owns a ParallelCluster node, by the first word of its os (pcluster.constants.OS_MAPPING).
_USERS = {"alinux": "ec2-user", "rhel": "ec2-user", "ubuntu": "ubuntu", "rocky": "rocky"}


def cluster_user(os: str) -> str | None:
    """Name the user that owns the nodes of an os, as ParallelCluster writes it; None for an unknown os."""
    return next((user for begins, user in _USERS.items() if os.startswith(begins)), None)


def start_session_command(*, region: str, instance_id: str, user: str) -> str:
    """Build the command, as it is typed into a shell.

    A session without a document is `sh` of ssm-user, who owns no job and has no Slurm on the PATH:
    ParallelCluster sets that in /etc/profile.d, which login shells alone read.
    """
    return (
        f"aws ssm start-session --region {region} --target {instance_id} "
        f'--document-name AWS-StartInteractiveCommand --parameters command="sudo --login --user {user}"'
    )
