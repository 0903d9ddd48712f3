"""Step 71 on nodes of folders, with the real programs: who exists, what is whose."""

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.unit.assets.bootstrap.steps.users_node import ALICE, BOB, FILE, UsersNode, owner, users_node
from tests.unit.training_cluster.users.keys import public_key

pytestmark = pytest.mark.root


@pytest.fixture
def node() -> Iterator[UsersNode]:
    with users_node() as node:
        yield node


@pytest.mark.parametrize("kind", ["ComputeFleet", "LoginNode", "HeadNode"])
def test_every_node_has_the_users_with_the_same_ids(node: UsersNode, kind: str) -> None:
    node.describe(FILE)
    node.does("71", node_type=kind)
    assert node.entry("alice")[2:] == [
        *("5001", "5001", "umask=077"),
        f"{node.slash}/efs/home/alice",
        "/bin/bash",
    ]
    assert node.group("nlp") == ["6001", "alice"]
    assert node.group("training-users") == ["4999", "alice", "bob"]
    sudoers = node.slash / "etc/sudoers.d/90-training-cluster-admins"
    assert sudoers.read_text().splitlines()[1:] == ["alice ALL=(ALL) NOPASSWD:ALL"]
    assert owner(sudoers)[2] == 0o440
    assert (kind == "HeadNode") == (node.slash / "efs" / "home").exists()


def test_a_second_run_changes_nothing_and_starts_no_program_for_users(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    before = node.files()
    for program in ("systemd-sysusers", "usermod"):
        node.stub(program)
    node.does("71", node_type="HeadNode")
    assert node.files() == before
    assert node.calls() == []


def test_homes_and_folders_are_private_and_complete(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    home, fsx = node.slash / "efs" / "home", node.slash / "fsx"
    assert owner(home) == (0, 0, 0o755)
    assert owner(home / "alice") == (ALICE, ALICE, 0o700)
    assert owner(home / "alice" / ".bashrc")[:2] == (ALICE, ALICE)
    assert owner(fsx / "users" / "bob") == (BOB, BOB, 0o700)
    assert owner(fsx / "projects" / "nlp") == (0, 6001, 0o2770)
    assert owner(node.keys("bob")) == (BOB, BOB, 0o600)
    assert public_key("bob") in node.keys("bob").read_text()
    assert (node.etc / "callers").read_text() == "bob@example.com bob\n"


def test_with_home_on_efs_the_homes_are_in_home(node: UsersNode) -> None:
    node.describe(FILE, home="efs")
    node.does("71", node_type="HeadNode")
    assert owner(node.slash / "home" / "alice") == (ALICE, ALICE, 0o700)


def test_new_keys_replace_the_old_ones_and_the_users_own_stay(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    own = public_key("laptop")
    node.keys("bob").write_text(node.keys("bob").read_text() + own + "\n")
    node.describe(FILE.replace(public_key("bob"), public_key("new")))
    node.does("71", node_type="HeadNode")
    lines = node.keys("bob").read_text().splitlines()
    assert lines[1:] == [public_key("new"), "# Training Cluster: end", own]


@pytest.mark.parametrize("how", ["locked", "left out"])
def test_a_locked_user_cannot_log_in_and_keeps_the_data(node: UsersNode, how: str) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    data = node.slash / "efs/home/alice/data"
    data.write_text("precious")
    lines = [line for line in FILE.splitlines() if "alice:" not in line]
    locked = FILE.replace("admin: true", "admin: true, locked: true")
    node.describe(locked if how == "locked" else "\n".join(lines))
    node.does("71", node_type="HeadNode")
    assert node.entry("alice")[6] == "/usr/sbin/nologin"
    assert node.text("etc/shadow").splitlines()[2].split(":")[7] == "1", "the account has expired"
    assert not (node.slash / "etc/sudoers.d/90-training-cluster-admins").exists()
    assert data.read_text() == "precious"
    if how == "locked":
        assert not node.keys("alice").exists()
        assert node.keys("alice").with_suffix(".locked").exists()
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    assert node.entry("alice")[6] == "/bin/bash"
    assert node.text("etc/shadow").splitlines()[2].split(":")[7] == "", "the account does not expire"
    assert public_key("alice") in node.keys("alice").read_text()


def test_without_a_file_of_users_all_are_locked_and_a_cluster_without_any_stays_as_it_is(
    node: UsersNode,
) -> None:
    before = node.files()
    node.does("71", node_type="HeadNode")
    assert node.files() == before
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    for path in (node.bundle / "users").iterdir():
        path.unlink()
    (node.bundle / "users").rmdir()
    node.does("71", node_type="HeadNode")
    assert {node.entry(name)[6] for name in ("alice", "bob")} == {"/usr/sbin/nologin"}
    assert node.entry("ubuntu")[6] == "/bin/bash"


def test_where_people_share_the_cluster_its_own_user_makes_the_environments_of_all(node: UsersNode) -> None:
    node.write("etc/parallelcluster/cfnconfig", "cfn_cluster_user=nobody\n")
    node.does("70", node_type="HeadNode")
    venvs = node.slash / "fsx" / "venvs"
    assert owner(venvs)[2] == 0o1777
    node.describe(FILE)
    node.does("70", node_type="HeadNode")
    node.does("70", node_type="HeadNode")
    assert owner(venvs)[::2] == (65534, 0o755)


def test_what_users_make_is_private_and_their_environments_are_their_own(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71")
    node.stub("id", 'case "$1" in -nG) echo nlp training-users ;; *) echo alice ;; esac')
    shell = 'PATH="$2:$PATH"; . "$1"; umask; echo "$TRAINING_VENVS"'
    profile = node.slash / "etc/profile.d/training-cluster-users.sh"
    for program in ("bash", "dash"):
        done = subprocess.run(
            [program, "-c", shell, "_", profile, node.programs], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["0077", f"{node.slash}/fsx/users/alice/venvs"]


def test_five_hundred_users_are_made_within_the_time_that_a_prolog_has(node: UsersNode) -> None:
    people = "".join(f"  user{each}: {{uid: {5000 + each}}}\n" for each in range(500))
    node.describe(f"users:\n{people}")
    node.does("71")
    started = time.monotonic()
    node.does("71")
    assert time.monotonic() - started < 10
    assert len(node.text("etc/passwd").splitlines()) == 502
