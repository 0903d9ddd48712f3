"""The file of users: what nodes get of it, and the message for each mistake in it."""

from pathlib import Path

from tests.unit.sentences import assert_sentences
from tests.unit.training_cluster.conftest import Write
from tests.unit.training_cluster.users.keys import public_key
from training_cluster.rules.context import read_settings
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

ALICE, BOB = public_key("alice"), public_key("bob")


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


MISTAKES = (
    "users:\n  Alice: {uid: 5001}",
    "users:\n  ubuntu: {uid: 5001}",
    "users:\n  alice:\n    uid: 1000",
    "users:\n  alice: {uid: 5001}\n  bob: {uid: 5001}",
    "users:\n  alice:\n    uid: 5001\n    account: nlp",
    "users:\n  alice:\n    uid: 5001\n    keys:\n    - ssh-ed25519 AAAA",
    "users:\n  alice:\n    uid: 5001\n    sudo: true",
    f"users:\n  alice: {{uid: 5001, keys: '{ALICE}'}}\n  bob: {{uid: 5002, keys: '{ALICE}'}}",
    "users:\n  alice: {uid: 5001, iam: 'arn:aws:s3:::x'}",
    "users:\n  alice: {uid: 5001, keys: '-----BEGIN OPENSSH PRIVATE KEY-----'}",
    "users:\n  alice:",
    "accounts:\n  a: {gid: 6000}\nusers:\n  a: {uid: 5001}",
    "people: {}",
    "users:\n  7: {uid: 5001}",
    f'users:\n  alice: {{uid: 5001, keys: ["{ALICE}\\nubuntu evil"]}}',
    f"users:\n  alice: {{uid: 5001, keys: 'command=\"x\" {ALICE}'}}",
)


def test_each_mistake_has_one_message_with_its_line(write: Write, tmp_path: Path) -> None:
    assert_sentences("users", MISTAKES, lambda text: read_settings({"users": write(text)}), tmp_path)
