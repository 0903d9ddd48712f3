"""Step 71 on nodes of folders, with the real programs: who exists, what is whose; and step 78."""

# ruff: noqa: E501 - lines of sacctmgr

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node
from tests.unit.training_cluster.users.keys import public_key
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes users")
ALICE, BOB = 5001, 5002
FILE = f"""
accounts:
  nlp: {{gid: 6001, quota_gib: 500}}
users:
  alice: {{uid: {ALICE}, account: nlp, keys: {public_key("alice")}, admin: true, quota_gib: 100}}
  bob: {{uid: {BOB}, keys: {public_key("bob")}, iam: bob@example.com}}
"""


class UsersNode(Node):
    """A node with the files of users of a Linux, and the bundle's users."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.file = root / "users.yaml"
        self.write("etc/passwd", "root:x:0:0::/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
        self.write("etc/group", "root:x:0:\nubuntu:x:1000:\n")
        self.write("etc/shadow", "root:*:1::::::\nubuntu:*:1::::::\n").chmod(0o600)
        self.write("etc/gshadow", "root:*::\nubuntu:*::\n")
        self.write("etc/skel/.bashrc", "# of the skeleton\n")
        for folder in ("home", "efs", "fsx"):
            (self.slash / folder).mkdir()
            (self.slash / folder).chmod(0o1777)

    def describe(self, text: str, *, home: str = "ebs") -> None:
        """Put a file of users into the bundle."""
        self.file.write_text(text)
        for name, content in render_users(read_users(str(self.file)), home=home).items():
            path = self.bundle / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def entry(self, name: str) -> list[str]:
        (found,) = [
            line.split(":") for line in self.text("etc/passwd").splitlines() if line.startswith(f"{name}:")
        ]
        return found

    def group(self, name: str) -> list[str]:
        (found,) = [
            line.split(":") for line in self.text("etc/group").splitlines() if line.startswith(f"{name}:")
        ]
        return [found[2], *sorted(found[3].split(","))]

    def keys(self, name: str) -> Path:
        return self.slash / "efs" / "home" / name / ".ssh" / "authorized_keys"


@pytest.fixture
def node() -> Iterator[UsersNode]:
    """A node, in a folder that other users can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        umask = os.umask(0o022)
        yield UsersNode(Path(name))
        os.umask(umask)


def owner(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@pytest.mark.parametrize("kind", ["ComputeFleet", "LoginNode", "HeadNode"])
def test_every_node_has_the_users_with_the_same_ids(node: UsersNode, kind: str) -> None:
    node.describe(FILE)
    node.does("71", node_type=kind)
    assert node.entry("alice")[2:] == ["5001", "5001", "", f"{node.slash}/efs/home/alice", "/bin/bash"]
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
    assert f"the uid 5001 of alice was that of {old}: give alice another" in done.stderr
    assert not (node.slash / "efs/home/alice").exists()


def test_the_gid_of_an_older_project_is_not_given_to_another_and_stays_for_life(node: UsersNode) -> None:
    projects = node.slash / "fsx" / "projects"
    for name, gid in (("old", 6001), ("kept", 6003)):
        (projects / name).mkdir(parents=True)
        os.chown(projects / name, 0, gid)
    node.describe(FILE.replace("accounts:\n", "accounts:\n  kept: {gid: 6004}\n"))
    done = node.run("71", node_type="HeadNode")
    assert done.returncode == 1
    assert f"the gid 6001 of nlp was that of {projects}/old: give nlp another" in done.stderr
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
    assert "the keys of bob could not be written" in node.does("71", node_type="HeadNode")


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


def test_a_user_who_gives_the_home_to_a_group_ends_no_deploy(node: UsersNode) -> None:
    node.describe(FILE)
    node.does("71", node_type="HeadNode")
    os.chown(node.slash / "efs/home/alice", ALICE, 6001)
    node.does("71", node_type="HeadNode")


def test_five_hundred_users_are_made_within_the_time_that_a_prolog_has(node: UsersNode) -> None:
    people = "".join(f"  user{each}: {{uid: {5000 + each}}}\n" for each in range(500))
    node.describe(f"users:\n{people}")
    node.does("71")
    started = time.monotonic()
    node.does("71")
    assert time.monotonic() - started < 10
    assert len(node.text("etc/passwd").splitlines()) == 502


ACCOUNTS_FILE = """
accounts:
  nlp: {gid: 6001, share: 2, max_nodes: 8, max_gpu_hours: 500}
users:
  alice: {uid: 5001, account: nlp, max_nodes: 4, max_jobs: 3}
  bob: {uid: 5002, locked: true}
"""
ON = "AccountingStorageType   = accounting_storage/slurmdbd\\nClusterName = training"


@pytest.fixture
def head(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    file = tmp_path / "users.yaml"
    file.write_text(ACCOUNTS_FILE)
    for name, content in render_users(read_users(str(file)), home="ebs").items():
        path = node.bundle / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    node.write("etc/parallelcluster/cfnconfig", "cfn_cluster_user=ubuntu\n")
    node.stub("scontrol", f"printf '{ON}\\n'")
    node.stub(
        "sacctmgr",
        f'case "$*" in *load*) cp "$3" {tmp_path}/loaded ;; *show*) printf "nlp|alice\\nold|alice\\n'
        f'old|carol\\n" ;; esac',
    )
    return node


def test_accounts_shares_and_limits_are_those_of_the_file(head: Node, tmp_path: Path) -> None:
    head.does("78", node_type="HeadNode")
    assert (
        (tmp_path / "loaded").read_text()
        == """\
Cluster - 'training':Fairshare=1
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
User - 'ubuntu':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'nlp':Description='nlp':Organization='training':Fairshare=2:GrpTRES=node=8:GrpTRESMins=gres/gpu=30000
Account - 'users':Description='users':Organization='training':Fairshare=1
Parent - 'nlp'
User - 'alice':DefaultAccount='nlp':Fairshare=1:GrpTRES=node=4:MaxJobs=3:MaxSubmitJobs=-1
Parent - 'users'
User - 'bob':DefaultAccount='users':Fairshare=1:GrpTRES=node=-1:MaxJobs=-1:MaxSubmitJobs=0
"""
    )


def test_a_user_loses_the_accounts_that_the_file_no_longer_gives(head: Node) -> None:
    head.does("78", node_type="HeadNode")
    removed = [call for call in head.calls() if "remove" in call]
    assert removed == [
        "sacctmgr --immediate --quiet remove user where name=alice account=old cluster=training"
    ]


def test_without_accounting_nothing_is_done(head: Node) -> None:
    head.stub(
        "scontrol", "printf 'AccountingStorageType   = accounting_storage/none\\nClusterName = training\\n'"
    )
    head.does("78", node_type="HeadNode")
    assert not [call for call in head.calls() if call.startswith("sacctmgr")]


def test_a_refusal_of_sacctmgr_is_reported(head: Node) -> None:
    head.stub("sacctmgr", "echo no database; exit 1")
    done = head.run("78", node_type="HeadNode")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "no database",
        "sacctmgr did not take the accounts of the file of users: see the lines above",
    ]
