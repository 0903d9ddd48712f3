"""The file of users: what nodes get of it, and the message for each mistake in it."""

# ruff: noqa: E501 - the messages, a mistake each
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.training_cluster.users.keys import public_key
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

Write = Callable[[str], str]
ALICE, BOB = public_key("alice"), public_key("bob")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of users, and return its path."""

    def write(text: str) -> str:
        file = tmp_path / "users.yaml"
        file.write_text(text)
        return str(file)

    return write


def refusal(path: str) -> str:
    with pytest.raises(ConfigurationError) as error:
        read_settings({"users": path})
    first, *lines, last = str(error.value).splitlines()
    assert first == f"users={path} cannot be used, nothing was done:"
    assert last == "  docs/how-to/users.md has all keys and examples"
    return "\n".join(line.strip() for line in lines)


def test_nodes_get_a_line_for_each_user(write: Write) -> None:
    text = f"""
accounts:
  nlp: {{gid: 6001, share: 2, max_nodes: 8, quota_gib: 20000}}
  vision: {{gid: 6002, max_gpu_hours: 500}}
users:
  alice:
    uid: 5001
    account: nlp
    more_accounts: vision
    keys: [{ALICE}]
    iam: [alice@example.com, "arn:aws:iam::123456789012:role/nlp"]
    quota_gib: 2000
  bob: {{uid: 5002, keys: "{BOB}", admin: yes, max_jobs: 3}}
  carol: {{uid: 5003, keys: "{public_key("carol")}", locked: true}}
"""
    assert {
        name: content.decode() for name, content in render_users(read_users(write(text)), home="efs").items()
    } == {
        "users/people": "alice 5001 active user nlp,vision 2000 nlp,vision 1 - -\n"
        "bob 5002 active admin - - users 1 - 3\ncarol 5003 locked user - - users 1 - -\n",
        "users/accounts": "nlp 6001 20000 2 8 -\nvision 6002 - 1 - 500\n",
        "users/keys": f"alice {ALICE}\nbob {BOB}\n",
        "users/callers": "alice@example.com alice\n123456789012:role/nlp alice\n",
        "users/homes": "/home\n",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("users:\n  Alice: {uid: 5001}", "line 2: users.Alice: not allowed as a name\nallowed: a lower-case letter, "
         "then letters, digits, _ and -, 31 at most"),
        ("users:\n  ubuntu: {uid: 5001}", "line 2: users.ubuntu: is a name of the operating system or of "
         "ParallelCluster: take another"),
        ("users:\n  alice:\n    uid: 1000", "line 3: users.alice.uid: 1000: not allowed\nallowed: a whole number from "
         "5000 to 59999, the same for the user's life"),
        ("users:\n  alice: {uid: 5001}\n  bob: {uid: 5001}", "line 3: users.bob.uid: 5001 belongs to alice (a uid is "
         "also the gid of the user's group)\ntype: uid: 5000"),
        ("users:\n  alice:\n    uid: 5001\n    account: nlp", "line 2: users.alice: there is no account nlp\n"
         "allowed: none: the file has no accounts"),
        ("users:\n  alice:\n    uid: 5001\n    keys:\n    - ssh-ed25519 AAAA", 'line 4: users.alice.keys: "ssh-ed25519 '
         'AAAA": the key is cut off or changed: copy the whole line\nallowed: a list of lines of .pub files, such as '
         "[ssh-ed25519 AAAAC3... alice@laptop]"),
        ("users:\n  alice:\n    uid: 5001\n    sudo: true", "line 4: users.alice.sudo: no such key.\nallowed: uid, "
         "account, more_accounts, keys, iam, admin, locked, share, max_nodes, max_jobs, quota_gib"),
        (f"users:\n  alice: {{uid: 5001, keys: '{ALICE}'}}\n  bob: {{uid: 5002, keys: '{ALICE}'}}",
         f"line 3: users.bob.keys: {ALICE[:40]} is given to alice already"),
        ("users:\n  alice: {uid: 5001, iam: 'arn:aws:s3:::x'}", 'line 2: users.alice.iam: "arn:aws:s3:::x" is neither '
         "the ARN of an IAM user or role nor a session's name\nallowed: a list of ARNs of IAM users and roles, or names "
         "of sessions, such as [alice@example.com]"),
        ("users:\n  alice: {uid: 5001, keys: '-----BEGIN OPENSSH PRIVATE KEY-----'}", "line 2: users.alice.keys: this is "
         "a private key: it stays with its owner; take the file that ends in .pub\nallowed: a list of lines of .pub "
         "files, such as [ssh-ed25519 AAAAC3... alice@laptop]"),
        ("users:\n  alice:", "line 2: users.alice: has nothing below it"),
        ("accounts:\n  a: {gid: 6000}\nusers:\n  a: {uid: 5001}", "line 4: users.a: is an account's name too: a user has "
         "a group of the same name"),
        ("people: {}", "line 1: users: is missing\nline 1: people: no such key.\nallowed: accounts, users"),
        ("users:\n  7: {uid: 5001}", "line 2: users.7: YAML reads this name as a number or as true or false: take another"),
        (f'users:\n  alice: {{uid: 5001, keys: ["{ALICE}\\nubuntu evil"]}}', f'line 2: users.alice.keys: "{ALICE[:40]}" is '
         "not a line of a public key\nallowed: a list of lines of .pub files, such as [ssh-ed25519 AAAAC3... alice@laptop]"),
        (f"users:\n  alice: {{uid: 5001, keys: 'command=\"x\" {ALICE}'}}", f'line 2: users.alice.keys: "command="x" '
         f'{ALICE[:28]}" is not a line of a public key\nallowed: a list of lines of .pub files, such as [ssh-ed25519 '
         "AAAAC3... alice@laptop]"),
    ],
)  # fmt: skip
def test_each_mistake_has_one_message_with_its_line(write: Write, text: str, said: str) -> None:
    assert refusal(write(text)) == said
