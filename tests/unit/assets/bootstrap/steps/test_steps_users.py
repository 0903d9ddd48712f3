"""Step 71 with the real programs on a node that has users: who exists, what is whose, and who attacks."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine
from tests.unit.training_cluster.users.keys import public_key
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

pytestmark = pytest.mark.root

ALICE, BOB = 5001, 5002
FILE = f"""
accounts:
  nlp: {{gid: 6001, quota_gib: 500}}
users:
  alice: {{uid: {ALICE}, account: nlp, keys: {public_key("alice")}, admin: true, quota_gib: 100}}
  bob: {{uid: {BOB}, keys: {public_key("bob")}, iam: bob@example.com}}
"""
SUDOERS = "etc/sudoers.d/90-training-cluster-admins"


class People:
    """A head node with the files of users of a Linux, and the bundle's users."""

    def __init__(self, node: Machine) -> None:
        self.node, self.root = node, node.root
        node.environment["NODE_TYPE"] = "HeadNode"
        node.write("etc/passwd", "root:x:0:0::/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
        node.write("etc/group", "root:x:0:\nubuntu:x:1000:\n")
        node.write("etc/shadow", "root:*:1::::::\nubuntu:*:1::::::\n").chmod(0o600)
        node.write("etc/gshadow", "root:*::\nubuntu:*::\n")
        node.write("etc/skel/.bashrc", "# of the skeleton\n")
        self.homes = node.root / "efs" / "home"

    def describe(self, text: str, *, home: str = "ebs") -> None:
        """Put a file of users into the bundle."""
        file = self.node.folder / "users.yaml"
        file.write_text(text)
        for name, content in render_users(read_users(str(file)), home=home).items():
            path = self.node.bundle / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def apply(self, text: str = FILE) -> str:
        """Describe users, and run the step, which has to succeed; return its messages."""
        self.describe(text)
        return self.node.does("71")

    def fails(self, text: str = FILE) -> str:
        """Describe users, and run the step, which has to fail; return its messages."""
        self.describe(text)
        done = self.node.run("71")
        assert done.returncode == 1, done
        return done.stderr

    def _entry(self, file: str, name: str) -> list[str]:
        lines = [line.split(":") for line in self.node.text(f"etc/{file}").splitlines()]
        (found,) = [line for line in lines if line[0] == name]
        return found

    def user(self, name: str) -> list[str]:
        return self._entry("passwd", name)

    def group(self, name: str) -> list[str]:
        _, _, gid, members = self._entry("group", name)
        return [gid, *sorted(members.split(","))]

    def expires(self, name: str) -> str:
        return self._entry("shadow", name)[7]

    def keys(self, name: str) -> Path:
        return self.homes / name / ".ssh" / "authorized_keys"


def owner(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@pytest.fixture
def people(shared_node: Machine) -> People:
    os.umask(0o022)
    return People(shared_node)


def test_every_node_has_the_users(people: People) -> None:
    """A second run changes nothing and starts no program. Without users a cluster stays as it is."""
    before = people.node.files()
    people.node.does("71")
    assert people.node.files() == before
    people.describe(FILE)
    people.node.does("71", NODE_TYPE="ComputeFleet")
    assert not people.homes.exists()
    assert people.user("alice")[2:] == ["5001", "5001", "umask=077", f"{people.homes}/alice", "/bin/bash"]
    assert (people.group("nlp"), people.group("training-users")) == (
        ["6001", "alice"],
        ["4999", "alice", "bob"],
    )
    assert people.node.text(SUDOERS).splitlines()[1:] == ["alice ALL=(ALL) NOPASSWD:ALL"]
    assert owner(people.root / SUDOERS)[2] == 0o440
    people.node.does("71")
    before = people.node.files()
    for program in ("systemd-sysusers", "usermod"):
        people.node.program(program)
    people.node.does("71")
    assert people.node.files() == before
    assert people.node.calls() == []


def test_homes_and_folders_are_private_and_complete(people: People) -> None:
    """New keys replace the file's old ones, and a user's own stay."""
    people.apply()
    homes, fsx = people.homes, people.root / "fsx"
    assert owner(homes) == (0, 0, 0o755)
    assert owner(homes / "alice") == (ALICE, ALICE, 0o700)
    assert owner(homes / "alice" / ".bashrc")[:2] == (ALICE, ALICE)
    assert owner(fsx / "users" / "bob") == (BOB, BOB, 0o700)
    assert owner(fsx / "projects" / "nlp") == (0, 6001, 0o2770)
    keys = people.keys("bob")
    assert owner(keys) == (BOB, BOB, 0o600)
    assert public_key("bob") in keys.read_text()
    assert (people.node.etc / "callers").read_text() == "bob@example.com bob\n"
    keys.write_text(keys.read_text() + public_key("laptop") + "\n")
    people.apply(FILE.replace(public_key("bob"), public_key("new")))
    lines = keys.read_text().splitlines()
    assert lines[1:] == [public_key("new"), "# Training Cluster: end", public_key("laptop")]
    # A user who gives the home to a group ends no deploy; with home=efs the homes are in /home.
    os.chown(homes / "alice", ALICE, 6001)
    people.apply()
    people.describe(FILE, home="efs")
    people.node.does("71")
    assert owner(people.root / "home" / "alice") == (ALICE, ALICE, 0o700)


@pytest.mark.parametrize("how", ["locked", "left out", "no file"])
def test_a_locked_user_keeps_the_data(people: People, how: str) -> None:
    people.apply()
    data = people.homes / "alice" / "data"
    data.write_text("precious")
    if how == "locked":
        people.apply(FILE.replace("admin: true", "admin: true, locked: true"))
        assert not people.keys("alice").exists()
        assert people.keys("alice").with_suffix(".locked").exists()
    elif how == "left out":
        people.apply("\n".join(line for line in FILE.splitlines() if "alice:" not in line))
    else:
        shutil.rmtree(people.node.bundle / "users")
        people.node.does("71")
        assert (people.user("bob")[6], people.user("ubuntu")[6]) == ("/usr/sbin/nologin", "/bin/bash")
    assert (people.user("alice")[6], people.expires("alice")) == ("/usr/sbin/nologin", "1")
    assert not (people.root / SUDOERS).exists()
    assert data.read_text() == "precious"
    people.apply()
    assert (people.user("alice")[6], people.expires("alice")) == ("/bin/bash", "")
    assert public_key("alice") in people.keys("alice").read_text()


def test_what_users_make_is_private(people: People) -> None:
    people.apply()
    people.node.program("id", 'case "$1" in -nG) echo nlp training-users ;; *) echo alice ;; esac')
    shell = 'PATH="$2:$PATH"; . "$1"; umask; echo "$TRAINING_VENVS"'
    profile = people.root / "etc/profile.d/training-cluster-users.sh"
    for program in ("bash", "dash"):
        command = [program, "-c", shell, "_", profile, people.node.bin]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["0077", f"{people.root}/fsx/users/alice/venvs"]


def test_ids_in_use_are_refused(people: People) -> None:
    """The others are made, and nobody becomes an admin or a member of a group under another's name."""
    people.apply()
    more = "  carol: {uid: 5010}\n  dave: {uid: 5001}\n  deploy: {uid: 5011, admin: true}\n"
    people.node.write("etc/group", people.node.text("etc/group") + "disk:x:6:\n")
    people.node.write("etc/passwd", people.node.text("etc/passwd") + "deploy:x:990:990::/:/bin/bash\n")
    accounts = FILE.replace("  nlp:", "  disk: {gid: 6002}\n  nlp:").replace("account: nlp", "account: disk")
    output = people.fails(accounts.replace(str(ALICE), "5009") + more)
    for words in (
        "the group disk has the gid 6",
        "alice has the uid 5001 on",
        "and the file says 5009: a uid stays for life",
        "the id 5001 of dave belongs to alice on",
        "deploy has the uid 990",
        "4 problems with users, the first: the group disk",
    ):
        assert words in output
    assert people.user("carol")[2] == "5010"
    assert owner(people.homes / "carol")[0] == 5010
    assert owner(people.homes / "alice")[0] == ALICE
    assert people.group("disk") == ["6", ""]
    assert not (people.root / SUDOERS).exists()


def test_ids_of_older_clusters_stay_theirs(people: People) -> None:
    """A user whom a killed run left half-made takes no uid."""
    projects = people.root / "fsx" / "projects"
    for path, uid, gid in (
        (people.homes / ".fresh-abc123", BOB, BOB),
        (people.homes / "eve", ALICE, ALICE),
        (projects / "old", 0, 6001),
        (projects / "kept", 0, 6003),
    ):
        path.mkdir(parents=True)
        os.chown(path, uid, gid)
    output = people.fails(FILE.replace("accounts:\n", "accounts:\n  kept: {gid: 6004}\n"))
    assert "the uid 5001 of alice " in output and f" {people.homes}/eve: give alice another" in output
    assert "the gid 6001 of nlp " in output and f" {projects}/old: give nlp another" in output
    assert f"{projects}/kept belongs to the gid 6003, and the file says 6004" in output
    assert not (people.homes / "alice").exists()
    assert not (projects / "nlp").exists()
    assert (people.homes / "bob").is_dir()


def test_older_folders_are_named_with_a_command(people: People) -> None:
    home, projects = people.homes / "alice", people.root / "fsx" / "projects"
    home.mkdir(parents=True)
    projects.mkdir()
    os.chown(home, 1000, 1000)
    os.chown(projects, 1000, 1000)
    keep = (
        f"sudo mv {projects} {projects}.old    or, to keep what is in it there: sudo chown root: {projects}"
    )
    assert keep in people.fails()
    projects.rename(f"{projects}.old")
    assert f"or, if all of it is alice's: sudo chown -R {ALICE}:{ALICE} {home}" in people.fails()
    subprocess.run(["chown", "-R", f"{ALICE}:{ALICE}", home], check=True)
    people.apply()
    assert public_key("alice") in people.keys("alice").read_text()


def test_links_lead_root_nowhere(people: People) -> None:
    """Nor do they end a deploy, as a pipe in the place of a user's keys does not."""
    users = people.root / "fsx" / "users"
    users.symlink_to(people.root / "etc")
    assert "could take the place of its users" in people.fails()
    users.unlink()
    people.apply()
    ssh, root = people.homes / "bob" / ".ssh", people.root / "root-ssh"
    root.mkdir(mode=0o700)
    (root / "authorized_keys").write_text("root's\n")
    ssh.rename(ssh.with_name("mine"))
    ssh.symlink_to(root)
    changed = FILE.replace(public_key("bob"), public_key("new"))
    assert "the keys of bob could not be written" in people.apply(changed)
    assert (root / "authorized_keys").read_text() == "root's\n"
    ssh.unlink()
    ssh.with_name("mine").rename(ssh)
    people.keys("bob").unlink()
    os.mkfifo(people.keys("bob"))
    os.chown(people.keys("bob"), BOB, BOB)
    people.node.program("timeout", f'exec {shutil.which("timeout")} "$1" 0.5 "${{@:3}}"')
    assert "the keys of bob could not be written" in people.apply(changed)


def test_users_who_block_keys_cost_little(people: People) -> None:
    """Two are waited for; the others get their keys at the next deploy."""
    users = "".join(f"  u{i}: {{uid: {5100 + i}, keys: {public_key(f'u{i}')}}}\n" for i in range(6))
    people.node.program("timeout", "exit 124")
    output = people.apply(f"users:\n{users}")
    assert len(people.node.calls()) == 2
    assert output.count("could not be written") == 6
    assert output.count("skipped, since the processes of 2 other users did not end") == 4
    (people.node.bin / "timeout").unlink()
    people.node.does("71")
    assert all(people.keys(f"u{i}").is_file() for i in range(6))


def test_a_users_process_gets_nothing_of_roots(people: People) -> None:
    """It could take over an open file (the lock, the log), or make that of its output a terabyte long."""
    people.describe(FILE)
    root = people.root
    setpriv = people.node.bin / "setpriv"  # not of bash, which would open the files again
    look, fill = "readlink /proc/self/fd/0 /proc/self/fd/*", "truncate --size=100M /proc/self/fd/1"
    setpriv.write_text(f"#!/bin/sh\n{look} >>{root}/open\n{fill}\n")
    setpriv.chmod(0o755)
    held = people.node.write("held.sh", f"exec 3>{root}/log 9>{root}/lock\n")
    done = people.node.run("71", BASH_ENV=str(held))
    assert done.returncode == 0
    assert len(done.stderr) < 10_000
    opened = people.node.text("open")
    assert "/tmp/" in opened
    assert not [name for name in ("log", "lock") if f"{root}/{name}\n" in opened]


def test_a_former_admin_has_no_sudo(people: People) -> None:
    people.describe(FILE)
    assert "sudo" not in people.node.run("71").stdout
    people.describe(FILE.replace("admin: true, ", "").replace("uid: 5002", "uid: 5002, admin: true"))
    assert people.node.run("71").stdout == "alice may no longer use sudo: ending the sessions\n"
    assert people.node.text(SUDOERS).splitlines()[1:] == ["bob ALL=(ALL) NOPASSWD:ALL"]


def test_quotas_are_set_once(people: People) -> None:
    """A Lustre without quotas of projects fails only a deploy that asks for one."""
    fsx = people.root / "fsx"
    people.node.program("lfs", 'case "$1" in project) echo "Operation not supported" >&2; exit 1 ;; esac')
    assert "Operation not supported\nthe quota of nlp could not be set" in people.fails()
    without = people.apply(FILE.replace(", quota_gib: 500", ""))
    assert f"Operation not supported\nnlp has no quota on {fsx}" in without
    people.node.program("lfs")
    people.node.calls()
    (people.node.root / "var/lib/training-cluster/quotas").unlink()
    people.apply()
    assert people.node.calls() == [
        f"lfs setquota -u 5001 --block-hardlimit 100G {fsx}",
        f"lfs setquota -u 5002 --block-hardlimit 0G {fsx}",
        f"lfs project -p 6001 -s {fsx}/projects/nlp",
        f"lfs setquota -p 6001 --block-hardlimit 500G {fsx}",
    ]
    people.node.does("71")
    assert people.node.calls() == []
