"""Renderer of the file of users for nodes: lines of words, which the steps of the bootstrap read."""

from training_cluster.users.model import DEFAULT_ACCOUNT, Users, principal_key

NOTHING = "-"


def render_users(users: Users, *, home: str) -> dict[str, bytes]:
    """Render the files of the bundle's folder `users`.

    Args:
        home: `home` of the settings: efs where /home is on EFS.

    Returns:
        people:   NAME UID active|locked admin|user GROUPS QUOTA_GIB ACCOUNTS SHARE MAX_NODES MAX_JOBS
        accounts: NAME GID QUOTA_GIB SHARE MAX_NODES MAX_GPU_HOURS
        keys:     NAME and a public key
        callers:  an IAM principal and NAME
        homes:    /home, or efs for the folder home of EFS
        A word without a value is NOTHING; lists are comma-separated.
    """
    people, keys, callers = [], [], []
    for name, user in users.users.items():
        people.append(
            _line(
                *(name, user.uid, "locked" if user.locked else "active", "admin" if user.admin else "user"),
                *(",".join(user.accounts), user.quota_gib, ",".join(user.accounts) or DEFAULT_ACCOUNT),
                *(user.share, user.max_nodes, user.max_jobs),
            )
        )
        if not user.locked:
            keys += [_line(name, key.strip()) for key in user.keys]
            callers += [_line(principal_key(each), name) for each in user.iam]
    accounts = [
        _line(name, each.gid, each.quota_gib, each.share, each.max_nodes, each.max_gpu_hours)
        for name, each in users.accounts.items()
    ]
    files = {
        "people": people,
        "accounts": accounts,
        "keys": keys,
        "callers": callers,
        "homes": ["/home\n" if home == "efs" else "efs\n"],
    }
    return {f"users/{name}": "".join(lines).encode() for name, lines in files.items()}


def _line(*words: object) -> str:
    return " ".join(NOTHING if word in {None, ""} else str(word) for word in words) + "\n"
