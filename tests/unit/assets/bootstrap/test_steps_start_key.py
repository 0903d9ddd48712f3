"""Step 64: the key of this cluster opens a /home that an earlier cluster left."""

from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node

OLD, NEW = "ssh-ed25519 AAAAold training-key", "ssh-ed25519 AAAAnew"


@pytest.fixture
def head(tmp_path: Path) -> Node:
    """A head node whose metadata has the new cluster's key."""
    node = Node(tmp_path)
    node.write("etc/parallelcluster/cfnconfig", "cfn_cluster_user=ubuntu\n")
    (node.slash / "home").mkdir()
    node.stub("getent", f'echo "ubuntu:x:1000:1000::{node.slash}/home:/bin/bash"')
    node.stub(
        "curl", f'case "$*" in *api/token) echo TOKEN ;; *"TOKEN "*) echo "{NEW} training-2-key" ;; esac'
    )
    node.stub("runuser", 'shift 3; exec "$@"')
    return node


@pytest.mark.parametrize("before", ["", f"{OLD}\n", OLD], ids=["none", "another", "without its end"])
def test_the_clusters_key_is_added_once_to_those_that_are_there(head: Node, before: str) -> None:
    file = head.slash / "home/.ssh/authorized_keys"
    if before:
        head.write("home/.ssh/authorized_keys", before)
    head.does("64", node_type="HeadNode")
    assert file.read_text() == f"{before.rstrip()}\n{NEW}\n".lstrip()
    assert any(call.startswith("runuser -u ubuntu -- bash") for call in head.calls())
    files = head.files()
    head.does("64", node_type="HeadNode")
    assert head.files() == files


def test_folders_that_the_step_makes_are_those_that_sshd_accepts(head: Node) -> None:
    head.does("64", node_type="HeadNode")
    folder = head.slash / "home/.ssh"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "authorized_keys").stat().st_mode & 0o777 == 0o600


def test_the_key_that_cloud_init_wrote_is_there_already(head: Node) -> None:
    file = head.write("home/.ssh/authorized_keys", f"{NEW} another comment\n")
    head.does("64", node_type="HeadNode")
    assert file.read_text() == f"{NEW} another comment\n"


@pytest.mark.parametrize(
    ("answers", "missing"),
    [
        ("exit 22", "the instance metadata has no api/token"),
        ('case "$*" in *api/token) echo TOKEN ;; *) exit 22 ;; esac', "has no meta-data/public-keys/0"),
        ('case "$*" in *api/token) echo TOKEN ;; esac', "has '', which is not an SSH key"),
        ('case "$*" in *api/token) echo TOKEN ;; *) echo ssh-rsa ;; esac', "has 'ssh-rsa', which is not"),
    ],
    ids=["no token", "no key", "an empty answer", "half a key"],
)
def test_metadata_without_a_key_leave_all_as_it_is_and_are_reported(
    head: Node, answers: str, missing: str
) -> None:
    file = head.write("home/.ssh/authorized_keys", f"{OLD}\n")
    head.stub("curl", answers)
    done = head.run("64", node_type="HeadNode")
    assert done.returncode == 1
    assert missing in done.stderr
    assert file.read_text() == f"{OLD}\n"
