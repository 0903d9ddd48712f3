"""Model of the file of users: people, and the project accounts to which they belong."""

import base64
import binascii
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, field_validator

from training_cluster.catalog.family import Strict
from training_cluster.user_yaml import Listed

NAME = r"^[a-z][a-z0-9_-]{0,30}$"
"""Names of users and accounts, which are Unix users, Unix groups and Slurm accounts."""
FIRST_ID, LAST_ID = 5000, 59_999
"""Range of uids and gids: above the ids of the AMIs and of ParallelCluster, below systemd's."""
ALL_USERS, DEFAULT_ACCOUNT = "training-users", "users"
"""Unix group of everybody in the file; Slurm account of users without a project account."""
# Users and groups of the AMIs, of ParallelCluster and of AWS's agents, and of this app.
TAKEN = frozenset(
    "root daemon bin sys adm games man mail news proxy backup list nobody sync shutdown halt sshd ubuntu "
    "ec2-user rocky admin sudo wheel docker slurm munge dcv pcluster-admin pcluster-slurm-resume-share "
    "ssm-user ssm-agent cwagent mysql slurmdbd users default training-admins".split()
) | {ALL_USERS}

_KEY_TYPES = (
    *("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    *("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
)
_ARN = r"arn:aws[a-z-]*:(iam|sts)::\d{12}:(user|role|assumed-role)/[\w+=,.@/-]+"
_SESSION = r"[\w+=,.@-]{2,64}"


Id = Annotated[int, Field(ge=FIRST_ID, le=LAST_ID)]
Limit = Annotated[int | None, Field(ge=1)]


class AccountEntry(Strict):
    """A project account: a Unix group, a folder /fsx/projects/NAME, and an account of Slurm."""

    gid: Id
    share: int = Field(1, ge=1, le=10_000)
    max_nodes: Limit = None
    max_gpu_hours: Limit = None
    quota_gib: Limit = None


class UserEntry(Strict):
    """One person."""

    uid: Id
    account: str | None = Field(None, pattern=NAME)
    more_accounts: Listed = ()
    keys: Listed = ()
    iam: Listed = ()
    admin: bool = False
    locked: bool = False
    share: int = Field(1, ge=1, le=10_000)
    max_nodes: Limit = None
    max_jobs: Limit = None
    quota_gib: Limit = None

    @property
    def accounts(self) -> tuple[str, ...]:
        """All project accounts, the default one first."""
        return tuple(dict.fromkeys([*([self.account] if self.account else []), *self.more_accounts]))

    @field_validator("keys")
    @classmethod
    def _are_public_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            check_key(each)
        return value

    @field_validator("iam")
    @classmethod
    def _are_principals(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if not re.fullmatch(_ARN if each.startswith("arn:") else _SESSION, each):
                raise ValueError(f'"{each}" is neither the ARN of an IAM user or role nor a session\'s name')
        return value


class Users(Strict):
    """The whole file."""

    accounts: dict[str, AccountEntry] = Field(default_factory=dict)
    users: dict[str, UserEntry]


def check_key(line: str) -> None:
    """Check a line of authorized_keys without options. Raises ValueError."""
    if "PRIVATE KEY" in line:
        raise ValueError("this is a private key: it stays with its owner; take the file that ends in .pub")
    kind, _, rest = line.strip().partition(" ")
    if kind not in _KEY_TYPES or not line.strip().isprintable():
        raise ValueError(f'"{line[:40]}" is not a line of a public key')
    try:
        blob = base64.b64decode(rest.split()[0] if rest else "", validate=True)
        (length,) = struct.unpack(">I", blob[:4])
        if blob[4 : 4 + length] != kind.encode() or len(blob) <= 4 + length:
            raise ValueError
    except (binascii.Error, struct.error, ValueError, IndexError):
        raise ValueError(f'"{line[:40]}": the key is cut off or changed: copy the whole line') from None


_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d+):role/(?:.*/)?([^/]+)")
_ASSUMED = re.compile(r"arn:aws[a-z-]*:sts::(\d+):assumed-role/([^/]+)/(.+)")


def principal_key(principal: str) -> str:
    """Return the form of a principal that is compared: AWS names a role's session without the role's path."""
    if found := _ROLE.fullmatch(principal):
        return f"{found[1]}:role/{found[2]}"
    if found := _ASSUMED.fullmatch(principal):
        return f"{found[1]}:role/{found[2]}/{found[3]}"
    return principal


def caller_keys(arn: str) -> tuple[str, ...]:
    """Return the keys of a caller's ARN (sts get-caller-identity), the closest first."""
    key = principal_key(arn)
    name = arn.rpartition("/")[2]
    return (key, name, key.rpartition("/")[0]) if _ASSUMED.fullmatch(arn) else (key, name)


Problem = tuple[tuple[str, ...], str]
"""Place in the file, and a sentence."""


def contradictions_of(found: Users) -> Iterator[Problem]:
    """Yield what single entries cannot show: names and ids that are given twice, or are missing."""
    for name in (*found.accounts, *found.users):
        kind = "accounts" if name in found.accounts else "users"
        if not re.fullmatch(NAME, name):
            yield (
                (kind, name),
                "not allowed as a name\n    allowed: a lower-case letter, then letters, digits, _ "
                "and -, 31 at most",
            )
        elif name in TAKEN:
            yield (
                (kind, name),
                "is a name of the operating system or of ParallelCluster: take another",
            )
    for name in found.users:
        if name in found.accounts:
            yield ("users", name), "is an account's name too: a user has a group of the same name"
    yield from _ids_given_twice(found)
    yield from _words_given_twice(found)
    for name, user in found.users.items():
        for account in user.accounts:
            if account not in found.accounts:
                allowed = ", ".join(found.accounts) or "none: the file has no accounts"
                yield ("users", name), f"there is no account {account}\n    allowed: {allowed}"


def _ids_given_twice(found: Users) -> Iterator[Problem]:
    seen: dict[int, str] = {}
    entries = [("accounts", "gid", name, each.gid) for name, each in found.accounts.items()]
    entries += [("users", "uid", name, each.uid) for name, each in found.users.items()]
    for kind, key, name, id_ in entries:
        if id_ in seen:
            taken = {*seen, *(each[3] for each in entries)}
            free = next(each for each in range(FIRST_ID, LAST_ID) if each not in taken)
            yield (
                (kind, name, key),
                f"{id_} belongs to {seen[id_]} (a uid is also the gid of the user's group)\n"
                f"    type: {key}: {free}",
            )
        seen.setdefault(id_, name)


def _words_given_twice(found: Users) -> Iterator[Problem]:
    """Yield each key and each IAM principal of two users: one of them would act as the other."""
    owners: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, user in found.users.items():
        for key in user.keys:
            owners["keys", " ".join(key.split()[:2])].append(name)
        for principal in user.iam:
            owners["iam", principal_key(principal)].append(name)
    for (kind, word), names in owners.items():
        if len(names) > 1:
            yield ("users", names[1], kind), f"{word[:40]} is given to {names[0]} already"
