"""Renders the people and project accounts of a file of users as text."""

from collections.abc import Iterator

from ops.printable import aligned
from training_cluster.users.model import Users

_HEADS = ("USER", "UID", "STATE", "ACCOUNTS", "KEYS", "QUOTA_GIB", "IAM")
_LIMITS = ("max_nodes", "max_gpu_hours", "quota_gib")


def render_list(users: Users) -> str:
    """Return a table of the people, and a line for each account."""
    rows = [_HEADS]
    for name, user in users.users.items():
        state = "locked" if user.locked else "admin" if user.admin else "user"
        words = (
            str(user.uid),
            state,
            ",".join(user.accounts),
            str(len(user.keys)),
            str(user.quota_gib or ""),
        )
        rows.append((name, *words, " ".join(user.iam)))
    return "\n".join([*aligned(rows), *_accounts(users)])


def _accounts(users: Users) -> Iterator[str]:
    for name, account in users.accounts.items():
        members = sorted(each for each, user in users.users.items() if name in user.accounts)
        words = [f"gid {account.gid}", f"share {account.share}"]
        words += [f"{key} {value}" for key in _LIMITS if (value := getattr(account, key))]
        yield f"account {name}: {', '.join(words)}; members: {', '.join(members) or 'none'}"
