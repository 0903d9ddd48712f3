"""Commands of a user on the head node, through Session Manager and Run Command."""

import re
import shlex
from collections.abc import Sequence

# The user that owns a ParallelCluster node, by the first word of its os (pcluster.constants.OS_MAPPING).
_USERS = {"alinux": "ec2-user", "rhel": "ec2-user", "ubuntu": "ubuntu", "rocky": "rocky"}

RUN_AS_USER = (
    "user=$(sed -n 's/^cfn_cluster_user=//p' /etc/parallelcluster/cfnconfig) && "
    "etc=/etc/training-cluster && refuse() { printf 'trainctl: %s\\n' \"$1\" >&2; exit 1; } && "
    'if [ -n "$as" ] && [ "$as" != "$user" ]; then '
    'user=$as; grep -qs "^$as [0-9]* active " $etc/users || refuse "$as is no user of this cluster"; '
    'elif [ -z "$as" ] && [ -s $etc/users ]; then user=""; for key in $callers; do '
    '[ -n "$user" ] || user=$(awk -v key="$key" \'$1"" == key {print $2; exit}\' $etc/callers); done; '
    '[ -n "$user" ] || refuse "your IAM identity (${callers%% *}) is nobody of this cluster"; fi; '
    'logger -t trainctl "${callers%% *} as $user" 2>/dev/null || true; '
    'exec sudo --set-home --user "${user:?is not in cfnconfig}" -- '
    "bash -c 'exec 3>&1 >/dev/null bash --login -c "
    '"cd && exec \\"\\$@\\" >&3 3>&-" trainctl "$@"\' trainctl '
)
"""Beginning of a script for Run Command, which runs the words that follow as a user.

That is `as`, or the user of the file of users to whom one of the `callers` belongs (`whom`); in a cluster
without such a file the cluster's own user. Step 71-apply-users.sh writes both files of /etc/training-cluster.
syslog, which ParallelCluster ships to the log group, has the caller and the user; the log of logins, which
80-ship-logs.sh ships there, has sudo's line with the command.

ParallelCluster names the user (ubuntu, ec2-user) in cfnconfig. That file has lists of bash, so it is not
sourced: the agent runs scripts with `sh`, which is dash on Ubuntu and ends with a syntax error there. The
login shell has Slurm on its PATH; what a user's profile prints is not part of the command's output. sudo
passes the words unchanged; its own --login would expand a $ in them.
"""


_WHOM = re.compile(r"as=(?P<user>\S*) callers=(?:'[^']*'|\S*); ")


def whom(*, user: str | None, callers: Sequence[str]) -> str:
    """Return what precedes RUN_AS_USER: the user that is asked for, and the keys of the caller's identity."""
    return f"as={shlex.quote(user) if user else ''} callers={shlex.quote(' '.join(callers))}; "


def split_whom(script: str) -> tuple[str, str]:
    """Split a script for Run Command into the user that it asks for, empty for none, and the rest."""
    found = _WHOM.match(script)
    return (shlex.split(found["user"] or "''")[0], script[found.end() :]) if found else ("", script)


def cluster_user(os: str) -> str | None:
    """Name the user that owns nodes of an operating system (ParallelCluster's name); None if unknown."""
    return next((user for begins, user in _USERS.items() if os.startswith(begins)), None)


def start_session_command(*, region: str, instance_id: str, user: str, command: str = "") -> str:
    """Build the command for a shell, or for a command that reads the keyboard.

    A session without a document runs `sh` as ssm-user, who owns no job and has no Slurm on the PATH:
    ParallelCluster sets the PATH in /etc/profile.d, which only login shells read.
    """
    shell = " ".join(["sudo --login --user", user, *([command] if command else [])])
    return (
        f"aws ssm start-session --region {region} --target {instance_id} "
        f'--document-name AWS-StartInteractiveCommand --parameters command="{shell}"'
    )
