"""Reader of the file of users; each mistake is named with its line."""

from collections.abc import Collection, Sequence

from pydantic import ValidationError

from training_cluster.paths import ROOT
from training_cluster.user_yaml import cached_until_changed, explained, line_of, read_file_of, unusable
from training_cluster.users.model import FIRST_ID, LAST_ID, AccountEntry, UserEntry, Users, contradictions_of

_DEPTH = 2
"""Depth of an entry: users, and a name."""
_ID = f"a whole number from {FIRST_ID} to {LAST_ID}, the same for the user's life"
TAKES = {
    "uid": _ID,
    "gid": _ID,
    "account": "a name below accounts",
    "more_accounts": "a list of names below accounts",
    "keys": "a list of lines of .pub files, such as [ssh-ed25519 AAAAC3... alice@laptop]",
    "iam": "a list of ARNs of IAM users and roles, or names of sessions, such as [alice@example.com]",
    "admin": "true (may use sudo), false",
    "locked": "true (cannot log in; the data stay), false",
    "share": "a whole number from 1 to 10000",
    "max_nodes": "a whole number of nodes",
    "max_jobs": "a whole number of jobs",
    "max_gpu_hours": "a whole number of hours",
    "quota_gib": "a whole number of GiB on Lustre",
}
_PAGE = "docs/how-to/users.md has all keys and examples"


@cached_until_changed
def read_users(name: str) -> Users:
    """Read a file of users.

    Args:
        name: path of the file, absolute or in the folder of cdk.json.

    Raises:
        ConfigurationError: no such file, no YAML, a key twice, an unknown key, or a wrong value.
    """
    otherwise = "the file has no key users, with people below it"
    content = read_file_of("users", name, otherwise=otherwise, page=_PAGE)
    try:
        found = Users.model_validate(content)
    except ValidationError as error:
        wrong = [_about_form(*each) for each in explained(error, takes=TAKES, known=_keys_at)]
    else:
        wrong = list(contradictions_of(found))
        if not wrong:
            return found
    problems = [f"line {line_of(ROOT / name, place)}: {'.'.join(place)}: {said}" for place, said in wrong]
    raise unusable(f"users={name}", problems, page=_PAGE)


def _keys_at(place: Sequence[str]) -> Collection[str]:
    model = Users if len(place) == 1 else UserEntry if place[0] == "users" else AccountEntry
    return model.model_fields


def _about_form(place: Sequence[str], said: str) -> tuple[Sequence[str], str]:
    """Add the right form to the words about a whole entry, or about a name that YAML reads otherwise."""
    if place[-1] == "[key]":
        return place[:-1], "YAML reads this name as a number or as true or false: take another"
    if len(place) <= _DEPTH and said.endswith("not allowed"):
        example = ("users: {alice: {uid: 5001}}", "alice: {uid: 5001}")[len(place) - 1]
        if place[0] == "accounts":
            example = example.replace("users", "accounts").replace("alice", "nlp").replace("uid", "gid")
        return place, f"{said}\n    allowed: names with their keys below them, such as {example}"
    return place, said
