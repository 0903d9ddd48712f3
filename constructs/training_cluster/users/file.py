"""Reader of the file of users; each mistake is named with its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError, did_you_mean
from training_cluster.user_yaml import UserYamlError, line_of, read_user_yaml
from training_cluster.users.model import FIRST_ID, LAST_ID, AccountEntry, UserEntry, Users, contradictions_of

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


def read_users(name: str) -> Users:
    """Read a file of users.

    Args:
        name: path of the file, absolute or in the folder of cdk.json.

    Raises:
        ConfigurationError: no such file, no YAML, a key twice, an unknown key, or a wrong value.
    """
    try:
        changed_ns = (ROOT / name).stat().st_mtime_ns
    except OSError:
        changed_ns = 0  # the reader says why
    return _read(name, changed_ns)


@cache
def _read(name: str, _changed_ns: int) -> Users:
    file = ROOT / name
    try:
        content = read_user_yaml(file)
    except UserYamlError as error:
        raise _mistake(name, error.problems) from None
    if not isinstance(content, dict):
        raise _mistake(name, ["the file has no key users, with people below it"])
    try:
        found = Users.model_validate(content)
    except ValidationError as error:
        raise _mistake(name, list(_explained(file, error))) from None
    if problems := [_placed(file, place, said) for place, said in contradictions_of(found)]:
        raise _mistake(name, problems)
    return found


def _explained(file: Path, error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        place = [str(each) for each in problem["loc"]]
        key = next((each for each in reversed(place) if not each.isdigit()), "")
        said = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            known = (
                Users if len(place) == 1 else UserEntry if place[0] == "users" else AccountEntry
            ).model_fields
            said = f"no such key.{did_you_mean(key, known)}\n    allowed: {', '.join(known)}"
        elif problem["type"] == "missing":
            said = f"is missing{_allowed(key)}"
        elif problem["type"] == "value_error":
            said += _allowed(key)
        elif problem["type"] in {"dict_type", "model_type", "model_attributes_type"}:
            said = "has no keys below it, such as uid" if len(place) > 1 else "has no names below it"
        else:
            said = f"{str(problem['input'])[:60]}: not allowed{_allowed(key)}"
        yield _placed(file, place, said)


def _allowed(key: str) -> str:
    return f"\n    allowed: {TAKES[key]}" if key in TAKES else ""


def _placed(file: Path, place: Sequence[str], said: str) -> str:
    return f"line {line_of(file, place)}: {'.'.join(place)}: {said}"


def _mistake(name: str, problems: list[str]) -> ConfigurationError:
    lines = [f"users={name} cannot be used, nothing was done:"]
    lines += [f"  {each}" for each in problems]
    lines.append("  docs/how-to/users.md has all keys and examples")
    return ConfigurationError("\n".join(lines))
