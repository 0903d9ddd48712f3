"""Finds a file of users, and edits it as text, so that its comments and its form stay.

A wrong result is not written.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from ops.account.deployed_flags import flags_or_none
from ops.account.session import ClientOf
from ops.context import read_context
from ops.usage import OpsError
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError, did_you_mean
from training_cluster.stack_names import DEFAULT_CLUSTER
from training_cluster.users.file import read_users
from training_cluster.users.model import FIRST_ID, Users

_INDENT = "  "
_DEFAULT_FILE = "users.yaml"


@dataclass(frozen=True, kw_only=True)
class NewUser:
    """A person to add; None for what is left out."""

    name: str
    uid: int | None = None
    account: str | None = None
    keys: tuple[str, ...] = ()
    iam: tuple[str, ...] = ()
    admin: bool = False


def find_users_file(file: Path | None, pairs: Sequence[str], client: ClientOf) -> Path:
    """Return the file that the user named, else the flag `users`, else the last deploy's.

    Args:
        pairs: FLAG=VALUE pairs of the command line.

    Raises:
        ConfigurationError: a pair is not FLAG=VALUE.
        OpsError: the file of the last deploy is missing.
    """
    if file:
        return file.absolute()
    context = read_context(pairs)
    if given := context.get("users"):
        return ROOT / str(given)
    name = str(context.get("cluster_name") or DEFAULT_CLUSTER)
    deployed = (flags_or_none(name, client) or {}).get("users")
    found = ROOT / str(deployed or _DEFAULT_FILE)
    if deployed and not found.exists():
        raise OpsError(
            f"The cluster was deployed with users={deployed}, and there is no {found}.\n"
            "  type:   --file FILE, the file of its users: a deploy locks everyone who is not in it"
        )
    return found


def add_user(file: Path, new: NewUser) -> Users:
    """Add a person to the file, which is created if it is missing; return the file's new content.

    Raises OpsError, and ConfigurationError for a file that would be wrong.
    """
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    users = read_users(str(file)) if _has_users(text) else Users(users={})
    if new.name in users.users:
        state = "is locked in" if users.users[new.name].locked else "is in"
        raise OpsError(
            f"{new.name} {state} {file} already.\n  type:   edit {file}, or trainctl users lock {new.name}"
        )
    return _write(file, _with_entry(file, text, _entry(new, users)))


def lock_user(file: Path, name: str, *, locked: bool) -> Users:
    """Set `locked` of a person. Raises OpsError for an unknown one, and ConfigurationError."""
    users = read_users(str(file))
    if name not in users.users:
        raise OpsError(
            f"{file} has no user {name}.{did_you_mean(name, users.users)}\n"
            f"  allowed: {', '.join(users.users) or 'none'}"
        )
    text = file.read_text(encoding="utf-8")
    value = "true" if locked else "false"
    entry = _value(_value(yaml.compose(text, Loader=yaml.SafeLoader), "users"), name)
    assert isinstance(entry, yaml.MappingNode)
    if found := next((node for key, node in entry.value if key.value == "locked"), None):
        start, end, piece = found.start_mark.index, found.end_mark.index, value
    elif entry.flow_style:
        start = end = entry.start_mark.index + 1
        piece = f"locked: {value}, "
    else:
        start = end = entry.start_mark.index
        piece = f"locked: {value}\n{' ' * entry.start_mark.column}"
    return _write(file, text[:start] + piece + text[end:])


@contextmanager
def undone_on_error(file: Path, edit: Callable[[], str]) -> Iterator[str]:
    """Edit a file, and undo it if the block fails, unless somebody else has edited the file since."""
    former = file.read_bytes() if file.exists() else None
    done = edit()
    written = file.read_bytes()
    try:
        yield done
    except BaseException:
        if file.read_bytes() == written and former is None:
            file.unlink()
        elif file.read_bytes() == written:
            _beside(file, former or b"").replace(file)
        raise


def _entry(new: NewUser, users: Users) -> list[str]:
    """Return the lines of a person, without indentation. A uid of former times is not given again."""
    taken = [*(each.uid for each in users.users.values()), *(each.gid for each in users.accounts.values())]
    uids = [each.uid for each in users.users.values()]
    uid = max(uids, default=FIRST_ID) + 1 if new.uid is None else new.uid
    while new.uid is None and uid in taken:
        uid += 1
    lines = [f"{new.name}:", f"{_INDENT}uid: {uid}"]
    lines += [f"{_INDENT}account: {new.account}"] if new.account else []
    for kind, words in (("keys", new.keys), ("iam", new.iam)):
        # Flow style would read a comma of a key's comment as its end.
        lines += (
            [f"{_INDENT}{kind}:", *(f"{_INDENT * 2}- {_quoted(each)}" for each in words)] if words else []
        )
    return [*lines, *([f"{_INDENT}admin: true"] if new.admin else [])]


def _quoted(word: str) -> str:
    return (
        word
        if re.fullmatch(r"[A-Za-z0-9][\w+/=@. -]*", word)
        else yaml.dump(word, width=10_000).split("\n")[0]
    )


def _has_users(text: str) -> bool:
    """Return False for a text without the key users, of which accounts alone may be in a file."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return root is not None and (not isinstance(root, yaml.MappingNode) or _value(root, "users") is not None)


def _with_entry(file: Path, text: str, entry: list[str]) -> str:
    root = yaml.compose(text, Loader=yaml.SafeLoader) if text.strip() else None
    listed = _value(root, "users") if root else None
    if listed is None:
        return (
            text
            + ("" if not text or text.endswith("\n") else "\n")
            + _block(["users:"], 0)
            + _block(entry, 2)
        )
    if not isinstance(listed, yaml.MappingNode) or (listed.flow_style and listed.value):
        raise OpsError(
            f"{file} has its users on one line, in braces.\n"
            f"  type:   a line for each, or add this one by hand:\n{_block(entry, 4).rstrip()}"
        )
    if not listed.value:  # users: {}
        return (
            text[: listed.start_mark.index].rstrip()
            + "\n"
            + _block(entry, 2)
            + text[listed.end_mark.index :].lstrip()
        )
    column, last = listed.start_mark.column, _last_line(listed)
    lines = text.splitlines(keepends=True)
    before = "".join(lines[: last + 1])
    return (
        before + ("" if before.endswith("\n") else "\n") + _block(entry, column) + "".join(lines[last + 1 :])
    )


def _block(lines: list[str], indent: int) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _last_line(node: yaml.Node) -> int:
    """Return the number of the last line with a value; a block's own end is the next block's."""
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _last_line(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _last_line(node.value[-1])
    mark: int = node.end_mark.line
    return mark - (node.end_mark.column == 0 and mark > node.start_mark.line)


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _beside(file: Path, content: bytes) -> Path:
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_bytes(content)
    return fresh


def _write(file: Path, text: str) -> Users:
    """Write the file in one rename, if it can be read."""
    fresh = _beside(file, text.encode())
    try:
        users = read_users(str(fresh))
        fresh.replace(file)
    except ConfigurationError as error:
        raise ConfigurationError(str(error).replace(str(fresh), str(file))) from None
    finally:
        fresh.unlink(missing_ok=True)
    return users
