"""Step 71 on nodes of folders: ids in use, users who attack, and a Lustre that refuses."""

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.unit.assets.bootstrap.steps.users_node import ALICE, BOB, FILE, UsersNode, owner, users_node
from tests.unit.training_cluster.users.keys import public_key

pytestmark = pytest.mark.root


@pytest.fixture
def node() -> Iterator[UsersNode]:
    with users_node() as node:
        yield node


def test_another_uid_is_refused_and_the_others_are_made(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    node.describe(FILE.replace(str(ALICE), "5009") + "  carol: {uid: 5010}\n  dave: {uid: 5001}\n")
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 1
    said = done.stderr.splitlines()
    assert "alice has the uid 5001 on" in said[0] and said[0].endswith(
        "and the file says 5009: a uid stays for life"
    )
    assert said[1].startswith("the id 5001 of dave belongs to alice on")
    assert said[-1].startswith("2 problems with users, the first: alice has the uid")
    assert node.entry("carol")[2] == "5010"
    assert owner(node.slash / "efs/home/carol")[0] == 5010
    assert owner(node.slash / "efs/home/alice")[0] == ALICE


def test_the_uid_of_an_older_clusters_user_is_not_given_to_another(node: UsersNode) -> None:
    old = node.slash / "efs" / "home" / "eve"
    old.mkdir(parents=True)
    os.chown(old, ALICE, ALICE)
    node.describe(FILE)
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 1
    assert f"the uid 5001 of alice belonged to {old}: give alice another" in done.stderr
    assert not (node.slash / "efs/home/alice").exists()


def test_the_gid_of_an_older_project_is_not_given_to_another_and_stays_for_life(node: UsersNode) -> None:
    projects = node.slash / "fsx" / "projects"
    for name, gid in (("old", 6001), ("kept", 6003)):
        (projects / name).mkdir(parents=True)
        os.chown(projects / name, 0, gid)
    node.describe(FILE.replace("accounts:\n", "accounts:\n  kept: {gid: 6004}\n"))
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 1
    assert f"the gid 6001 of nlp belonged to {projects}/old: give nlp another" in done.stderr
    assert f"{projects}/kept belongs to the gid 6003, and the file says 6004" in done.stderr
    assert not (projects / "nlp").exists()


def test_folders_from_before_there_were_users_are_named_with_what_to_type(node: UsersNode) -> None:
    home, projects = node.slash / "efs" / "home" / "alice", node.slash / "fsx" / "projects"
    home.mkdir(parents=True)
    projects.mkdir()
    os.chown(home, 1000, 1000)
    os.chown(projects, 1000, 1000)
    node.describe(FILE)
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 1
    assert (
        f"sudo mv {projects} {projects}.old    or, to keep what is in it there: sudo chown root: {projects}"
        in (done.stderr)
    )
    projects.rename(f"{projects}.old")
    done = node.run("71", node_type="HeadNode")
    assert f"or, if all of it is alice's: sudo chown -R {ALICE}:{ALICE} {home}" in done.stderr
    subprocess.run(["chown", "-R", f"{ALICE}:{ALICE}", home], check=True)
    node.does("71", node_type="HeadNode")
    assert public_key("alice") in node.keys("alice").read_text()


def test_a_user_cannot_take_the_place_of_the_homes_or_lead_root_elsewhere_by_links(node: UsersNode) -> None:
    node.describe(FILE)
    (node.slash / "fsx" / "users").symlink_to(node.slash / "etc")
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 1 and "could take the place of its users" in done.stderr
    (node.slash / "fsx" / "users").unlink()
    node.does("71", node_type="HeadNode")
    ssh, root = node.slash / "efs/home/bob/.ssh", node.slash / "root-ssh"
    root.mkdir(mode=0o700)
    (root / "authorized_keys").write_text("root's\n")
    subprocess.run(["rm", "-r", str(ssh)], check=True)
    ssh.symlink_to(root)
    node.describe(FILE.replace(public_key("bob"), public_key("new")))
    said = node.does("71", node_type="HeadNode")  # what a user does ends no deploy
    assert "the keys of bob could not be written" in said
    assert (root / "authorized_keys").read_text() == "root's\n"


def test_a_pipe_in_the_place_of_a_users_keys_ends_no_deploy(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    node.keys("bob").unlink()
    os.mkfifo(node.keys("bob"))
    os.chown(node.keys("bob"), BOB, BOB)
    node.describe(FILE.replace(public_key("bob"), public_key("new")))
    node.stub("timeout", f'exec {shutil.which("timeout")} "$1" 0.5 "${{@:3}}"')
    assert "the keys of bob could not be written" in node.does("71", node_type="HeadNode")


def test_users_who_block_their_keys_do_not_use_up_the_budget_of_the_step(node: UsersNode) -> None:
    """Two are waited for; the others get their keys at the next deploy."""
    users = "".join(f"  u{i}: {{uid: {5100 + i}, keys: {public_key(f'u{i}')}}}\n" for i in range(6))
    node.describe(f"users:\n{users}")
    node.stub("timeout", f"echo >>{node.slash}/waited; exit 124")
    said = node.does("71", node_type="HeadNode")
    assert node.text("waited").count("\n") == 2
    assert said.count("could not be written") == 6
    assert said.count("skipped, since the processes of 2 other users did not end") == 4
    (node.programs / "timeout").unlink()
    node.does("71", node_type="HeadNode")
    assert all(node.keys(f"u{i}").is_file() for i in range(6))


def test_nobody_becomes_a_member_of_the_systems_groups_or_an_admin_under_anothers_name(
    node: UsersNode,
) -> None:
    """An account has the name of a group that the node has, and an admin that of another user."""
    node.write("etc/group", node.text("etc/group") + "disk:x:6:\n")
    node.write("etc/passwd", node.text("etc/passwd") + "deploy:x:990:990::/:/bin/bash\n")
    accounts = FILE.replace("  nlp:", "  disk: {gid: 6002}\n  nlp:").replace("account: nlp", "account: disk")
    node.describe(accounts + "  deploy: {uid: 5010, admin: true}\n")
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 1
    assert "the group disk has the gid 6" in done.stderr and "deploy has the uid 990" in done.stderr
    assert node.group("disk") == ["6", ""]
    assert "deploy" not in node.text("etc/sudoers.d/90-training-cluster-admins")
    assert node.group("training-users") == ["4999", "alice", "bob"]


def test_a_process_as_a_user_has_no_open_file_of_roots(node: UsersNode) -> None:
    """Another process of the user could take it over, and keep the lock or the log of the bootstrap."""
    node.describe(FILE)
    node.stub("setpriv", f"readlink /proc/self/fd/0 /proc/self/fd/* >>{node.slash}/open")
    held = f"exec 3>{node.slash}/log 9>{node.slash}/lock"
    node.write("held.sh", f"{held}\n")
    assert node.run("71", node_type="HeadNode", BASH_ENV=str(node.slash / "held.sh")).returncode == 0
    opened = node.text("open")
    assert "/tmp/" in opened
    assert not [name for name in ("log", "lock") if f"{node.slash}/{name}\n" in opened]


def test_output_of_a_process_as_a_user_does_not_fill_the_log(node: UsersNode) -> None:
    """Whoever holds the file of its output can make it a terabyte long with one call."""
    node.describe(FILE)
    node.stub("setpriv", "truncate --size=100M /proc/self/fd/1; exit 1")
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 0
    assert "the keys of bob could not be written" in done.stderr
    assert len(done.stderr) < 10_000


def test_a_former_admin_has_no_sudo_and_no_login_that_stays(node: UsersNode) -> None:
    node.describe(FILE)
    assert "sudo" not in node.run("71", node_type="HeadNode").stdout
    node.describe(FILE.replace("admin: true, ", "").replace("uid: 5002", "uid: 5002, admin: true"))
    done = node.run("71", node_type="HeadNode")
    assert done.stdout == "alice may no longer use sudo: ending the sessions\n"
    sudoers = node.text("etc/sudoers.d/90-training-cluster-admins").splitlines()
    assert sudoers[1:] == ["bob ALL=(ALL) NOPASSWD:ALL"]


def test_what_a_killed_run_left_does_not_take_the_uid(node: UsersNode) -> None:
    left = node.slash / "efs" / "home" / ".fresh-abc123"
    left.mkdir(parents=True)
    os.chown(left, ALICE, ALICE)
    node.describe(FILE)
    node.does("71", node_type="HeadNode")


@pytest.mark.parametrize("quota", [True, False])
def test_a_lustre_without_quotas_of_projects_fails_only_a_deploy_that_asks_for_one(
    node: UsersNode, quota: bool
) -> None:
    node.stub("lfs", 'case "$1" in project) echo "Operation not supported" >&2; exit 1 ;; esac')
    node.describe(FILE if quota else FILE.replace(", quota_gib: 500", ""))
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == quota, done
    said = "the quota of nlp could not be set" if quota else f"nlp has no quota on {node.slash}/fsx"
    assert f"Operation not supported\n{said}" in done.stderr


def test_quotas_are_set_once_for_users_and_projects(node: UsersNode) -> None:
    node.stub("lfs")
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    fsx = node.slash / "fsx"
    assert node.calls() == [
        f"lfs setquota -u 5001 --block-hardlimit 100G {fsx}",
        f"lfs setquota -u 5002 --block-hardlimit 0G {fsx}",
        f"lfs project -p 6001 -s {fsx}/projects/nlp",
        f"lfs setquota -p 6001 --block-hardlimit 500G {fsx}",
    ]
    node.does("71", node_type="HeadNode")
    assert node.calls() == []


def test_a_user_who_gives_the_home_to_a_group_ends_no_deploy(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    os.chown(node.slash / "efs/home/alice", ALICE, 6001)
    node.does("71", node_type="HeadNode")
