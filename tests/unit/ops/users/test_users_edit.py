"""`trainctl users`: what it makes of a file, with comments and form kept, and what it refuses."""

from pathlib import Path

import pytest

from ops.usage import OpsError
from ops.users.edit import NewUser, add_user, lock_user
from ops.users.list import render_list
from tests.unit.training_cluster.users.keys import public_key
from training_cluster.problems import ConfigurationError
from training_cluster.users.file import read_users

FILE = f"""# The team.
users:
  alice: # first
    uid: 5001
    keys:
    - {public_key("alice")}
  bob: {{uid: 5002, admin: true}}   # of the operators

# Projects.
accounts:
  nlp: {{gid: 5003}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "users.yaml"
    file.write_text(FILE)
    return file


def test_new_users_are_appended_with_the_next_id(file: Path) -> None:
    key = public_key("carol")
    add_user(file, NewUser(name="carol", account="nlp", keys=(key,), iam=("carol@example.com",)))
    added = f"""\
  carol:
    uid: 5004
    account: nlp
    keys:
      - {key}
    iam:
      - carol@example.com
"""
    assert file.read_text() == FILE.replace("# of the operators\n", f"# of the operators\n{added}")


@pytest.mark.parametrize("text", [None, "", "users: {}\n", "accounts: {a: {gid: 6000}}\n", "users: {}"])
def test_the_first_user_gets_the_first_id(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "users.yaml"
    if text is not None:
        file.write_text(text)
    assert add_user(file, NewUser(name="alice")).users["alice"].uid == 5001
    assert "  alice:\n    uid: 5001\n" in file.read_text()


def test_a_lock_adds_one_word_and_is_reversible(file: Path) -> None:
    lock_user(file, "alice", locked=True)
    lock_user(file, "bob", locked=True)
    assert file.read_text() == FILE.replace("    uid: 5001", "    locked: true\n    uid: 5001").replace(
        "{uid: 5002", "{locked: true, uid: 5002"
    )
    lock_user(file, "bob", locked=False)
    assert not read_users(str(file)).users["bob"].locked


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (NewUser(name="alice"), "alice is in"),
        (NewUser(name="Carol"), "not allowed as a name"),
        (NewUser(name="carol", account="cv"), "there is no account cv"),
        (NewUser(name="carol", uid=5001), "5001 belongs to"),
        (NewUser(name="carol", keys=(public_key("alice"),)), "is given to alice already"),
        (NewUser(name="carol", keys=("/home/carol/.ssh/id.pub",)), "is not a line of a public key"),
    ],
)
def test_a_wrong_user_changes_nothing(file: Path, new: NewUser, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        add_user(file, new)
    assert file.read_text() == FILE
    assert [path.name for path in file.parent.iterdir()] == ["users.yaml"]


def test_an_unknown_user_cannot_be_locked(file: Path) -> None:
    with pytest.raises(OpsError, match="no user bobb"):
        lock_user(file, "bobb", locked=True)


def test_the_list_shows_people_and_accounts(file: Path) -> None:
    assert render_list(read_users(str(file))).splitlines() == [
        "USER   UID   STATE  ACCOUNTS  KEYS  QUOTA_GIB  IAM",
        "alice  5001  user             1",
        "bob    5002  admin            0",
        "account nlp: gid 5003, share 1; members: none",
    ]
