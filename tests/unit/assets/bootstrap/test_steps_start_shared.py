"""Steps 70, 73 and 75 in a shared folder where, as in /fsx, every user of the cluster may create files."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
# Tries all that would put other scripts in the place: a folder, a link, another name for root's link.
TAKES = """while true; do
    mkdir .training-new training; ln -sfn .training-new training; mv -T training mine; echo x >training/x
done"""


@pytest.fixture
def node() -> Iterator[Node]:
    """A head node, in a folder that other users can reach."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        node = Node(folder)
        for path in ("gpt2/train.sh", "job.slurm"):
            file = node.bundle / "training" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{path}\n")
        fsx = node.slash / "fsx"
        fsx.mkdir(parents=True)
        fsx.chmod(0o1777)
        umask = os.umask(0o077)  # as strict as a node's may be
        yield node
        os.umask(umask)


def names(node: Node) -> list[str]:
    """Names in the shared folder, without the random ends of those that the step makes."""
    return sorted(path.name[: len(".training-")] for path in (node.slash / "fsx").iterdir())


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_all_users_may_read_the_scripts_and_only_their_owner_may_write_them(node: Node) -> None:
    node.does("75", node_type="HeadNode")
    training = node.slash / "fsx" / "training"
    assert (training / "gpt2" / "train.sh").read_text() == "gpt2/train.sh\n"
    assert training.stat().st_mode & 0o777 == 0o755
    assert (training / "job.slurm").stat().st_mode & 0o777 == 0o644
    assert names(node) == [".training-", "training"]
    before = training.stat().st_ino
    node.does("75", node_type="HeadNode")
    assert training.stat().st_ino == before, "it was replaced by the same"


def test_new_scripts_take_the_place_of_old_ones_and_a_killed_run_leaves_nothing(node: Node) -> None:
    node.does("75", node_type="HeadNode")
    for folder in (".training-AbCdEf/training", ".training-AbCdEf.new"):
        (node.slash / "fsx" / folder).mkdir(parents=True)
    (node.bundle / "training" / "job.slurm").write_text("newer\n")
    (node.bundle / "training" / "gpt2" / "train.sh").unlink()
    node.does("75", node_type="HeadNode")
    training = node.slash / "fsx" / "training"
    assert (training / "job.slurm").read_text() == "newer\n"
    assert not (training / "gpt2" / "train.sh").exists()
    # Those of the deploy before, for what runs.
    assert names(node) == [".training-", ".training-", "training"]
    node.does("75", node_type="HeadNode")
    assert names(node) == [".training-", "training"]


def test_a_folder_of_an_older_version_becomes_a_link_with_the_new_scripts(node: Node) -> None:
    training = node.slash / "fsx" / "training"
    shutil.copytree(node.bundle / "training", training)
    node.does("75", node_type="HeadNode")
    assert training.is_symlink()
    assert owners(training) == {0} or os.geteuid()
    assert names(node) == [".training-", "training"]


@pytest.mark.slow
def test_a_job_finds_the_scripts_of_one_deploy_or_the_next_at_every_instant(node: Node) -> None:
    node.does("75", node_type="HeadNode")
    script = node.slash / "fsx" / "training" / "job.slurm"
    reads = f"while true; do cat {script} || echo missing; done"
    with subprocess.Popen(["bash", "-c", reads], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        for number in range(20):
            (node.bundle / "training" / "job.slurm").write_text(f"{number}\n")
            node.does("75", node_type="HeadNode")
        reader.kill()
        assert reader.stdout
        said = reader.stdout.read().decode().split()
    assert "19" in said
    assert "missing" not in said


@pytest.mark.slow
@pytest.mark.root
def test_a_user_who_takes_every_name_again_and_again_does_not_get_the_scripts(node: Node) -> None:
    fsx = node.slash / "fsx"
    node.does("75", node_type="HeadNode")
    attack = subprocess.Popen(
        [*AS_NOBODY, "bash", "-c", TAKES],
        cwd=fsx,
        stderr=subprocess.DEVNULL,
    )
    try:
        for number in range(10):
            (node.bundle / "training" / "job.slurm").write_text(f"{number}\n")
            node.does("75", node_type="HeadNode")
            assert owners(fsx / "training") == {0}
            assert (fsx / "training" / "job.slurm").read_text() == f"{number}\n"
    finally:
        attack.kill()
        attack.wait()


@pytest.mark.root
def test_scripts_that_somebody_else_put_there_are_replaced_though_they_are_the_same(node: Node) -> None:
    training = node.slash / "fsx" / "training"
    shutil.copytree(node.bundle / "training", training)
    os.chown(training / "job.slurm", NOBODY, NOBODY)
    node.does("75", node_type="HeadNode")
    assert owners(training) == {0}


def test_every_workload_has_folders_for_all_users_and_a_file_to_lock(node: Node) -> None:
    node.does("70", node_type="HeadNode")
    fsx = node.slash / "fsx"
    for name in ("venvs", "runs", "runs/gpt2", "datasets/gpt2", "checkpoints/gpt2"):
        assert (fsx / name).stat().st_mode & 0o7777 == 0o1777, name
    lock = fsx / "datasets" / "gpt2" / ".prepare.lock"
    assert lock.stat().st_mode & 0o777 == 0o666
    before = lock.stat().st_ino
    node.does("70", node_type="HeadNode")
    assert lock.stat().st_ino == before, "who waits for the old one would not wait for the new one"


@pytest.mark.root
def test_every_user_can_lock_that_file(node: Node) -> None:
    node.does("70", node_type="HeadNode")
    lock = node.slash / "fsx" / "datasets" / "gpt2" / ".prepare.lock"
    for user in (AS_NOBODY, ("setpriv", "--reuid=12345", "--clear-groups"), ()):
        subprocess.run([*user, "flock", lock, "true"], check=True)
        # For writing, as flock opens it again where NFS refuses the first lock.
        subprocess.run([*user, "bash", "-c", 'exec 9<>"$1"', "_", lock], check=True)


@pytest.mark.root
@pytest.mark.parametrize("name", ["runs/gpt2", "venvs", "datasets/gpt2/.prepare.lock"])
def test_what_a_user_made_under_such_a_name_stays_and_is_reported(node: Node, name: str) -> None:
    fsx = node.slash / "fsx"
    theirs = fsx / name
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text("mine")
    os.chown(theirs, NOBODY, NOBODY)
    assert f"{theirs} exists already as a regular file of nobody" in node.does("70", node_type="HeadNode")
    assert (theirs.read_text(), theirs.stat().st_uid) == ("mine", NOBODY)
    assert (fsx / "checkpoints" / "gpt2").is_dir(), "the others are made"


@pytest.mark.root
def test_a_users_own_folder_is_not_opened_and_a_users_link_is_not_followed(node: Node) -> None:
    fsx, secret = node.slash / "fsx", node.slash / "secret"
    secret.mkdir(0o700)
    for folder in ("runs", "datasets"):
        (fsx / folder).mkdir()
    (fsx / "runs" / "gpt2").mkdir(0o700)
    os.chown(fsx / "runs" / "gpt2", NOBODY, NOBODY)
    (fsx / "datasets" / "gpt2").symlink_to(secret)
    os.lchown(fsx / "datasets" / "gpt2", NOBODY, NOBODY)
    said = node.does("70", node_type="HeadNode")
    assert f"{fsx}/runs/gpt2 exists already" in said
    assert f"{fsx}/datasets/gpt2 exists already" in said
    assert (fsx / "runs" / "gpt2").stat().st_mode & 0o777 == 0o700
    assert secret.stat().st_mode & 0o777 == 0o700
    assert list(secret.iterdir()) == []


@pytest.mark.parametrize("name", ["runs", "images", "datasets/gpt2"])
def test_a_link_of_root_is_not_followed(node: Node, name: str) -> None:
    """FSx creates such a link below datasets/ from an object that a job uploads."""
    link, target = node.slash / "fsx" / name, node.slash / "cron.d"
    target.mkdir(mode=0o700)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    said = node.does("70", node_type="HeadNode")
    assert target.stat().st_mode & 0o7777 == 0o700
    assert list(target.iterdir()) == []
    assert f"{link} exists already as a symbolic link of" in said
    assert (node.slash / "fsx" / "checkpoints" / "gpt2").is_dir(), "the others are made"


LOGIN = "UMASK\t022\n#HOME_MODE\t0700\nHOME_MODE\t0750\n"


@pytest.fixture
def of_directory(node: Node) -> Node:
    """A node of a cluster with a directory."""
    (node.bundle / "directory").touch()
    (node.slash / "etc").mkdir(parents=True)
    (node.slash / "etc" / "login.defs").write_text(LOGIN)
    return node


def test_a_directory_makes_homes_private_and_a_second_run_changes_nothing(
    of_directory: Node,
) -> None:
    for _ in range(2):
        of_directory.does("73", node_type="HeadNode")
        assert of_directory.text("etc/login.defs") == "UMASK\t022\n#HOME_MODE\t0700\nHOME_MODE\t0700\n"
        assert "umask 077" in of_directory.text("etc/profile.d/training-cluster-directory.sh")
        assert (of_directory.slash / "fsx" / "users").stat().st_mode & 0o7777 == 0o1777


def test_login_settings_that_cannot_be_read_are_kept(of_directory: Node) -> None:
    of_directory.stub("sed", "echo 'read error' >&2; exit 4")
    assert of_directory.run("73", node_type="HeadNode").returncode != 0
    assert of_directory.text("etc/login.defs") == LOGIN


def test_compute_nodes_make_no_shared_folder(of_directory: Node) -> None:
    of_directory.does("73")
    assert not (of_directory.slash / "fsx" / "users").exists()


def test_without_a_directory_the_system_stays_as_it_is_and_the_profile_goes(of_directory: Node) -> None:
    of_directory.does("73")
    (of_directory.bundle / "directory").unlink()
    of_directory.does("73", node_type="HeadNode")
    assert not (of_directory.slash / "etc/profile.d/training-cluster-directory.sh").exists()
    assert not (of_directory.slash / "fsx" / "users").exists()


@pytest.mark.root
def test_a_folder_that_a_user_made_first_is_reported_and_keeps_its_mode(of_directory: Node) -> None:
    folder = of_directory.slash / "fsx" / "users"
    folder.mkdir(mode=0o700)
    os.chown(folder, 1, 1)
    done = of_directory.run("73", node_type="HeadNode")
    assert done.returncode == 1
    assert "fsx/users belongs to daemon" in done.stderr
    assert folder.stat().st_mode & 0o7777 == 0o700
