"""Steps 70, 73 and 75 in a shared folder where, as in /fsx, every user of the cluster may create files."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, fails

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
# Tries all that would put other scripts in the place: a folder, a link, another name for root's link.
TAKES = """while true; do
    mkdir .training-new training; ln -sfn .training-new training; mv -T training mine; echo x >training/x
done"""


@pytest.fixture
def node(shared_node: Machine) -> Machine:
    umask = os.umask(0o022)
    for path in ("gpt2/train.sh", "job.slurm"):
        file = shared_node.bundle / "training" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{path}\n")
    os.umask(umask)
    return shared_node


def names(node: Machine) -> list[str]:
    """Names in the shared folder, without the random ends of those that the step makes."""
    return sorted(path.name[: len(".training-")] for path in (node.root / "fsx").iterdir())


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_scripts_are_replaced_at_once(node: Machine) -> None:
    """A folder of an older version becomes a link, and what a killed run left goes."""
    training = node.root / "fsx" / "training"
    shutil.copytree(node.bundle / "training", training)
    node.does("75")
    assert training.is_symlink()
    assert owners(training) == {os.geteuid()}
    assert (training / "gpt2" / "train.sh").read_text() == "gpt2/train.sh\n"
    assert (mode(training), mode(training / "job.slurm")) == (0o755, 0o644)
    assert names(node) == [".training-", "training"]
    before = training.stat().st_ino
    node.does("75")
    assert training.stat().st_ino == before, "it was replaced by the same"
    for folder in (".training-AbCdEf/training", ".training-AbCdEf.new"):
        (node.root / "fsx" / folder).mkdir(parents=True)
    (node.bundle / "training" / "job.slurm").write_text("newer\n")
    (node.bundle / "training" / "gpt2" / "train.sh").unlink()
    node.does("75")
    assert (training / "job.slurm").read_text() == "newer\n"
    assert not (training / "gpt2" / "train.sh").exists()
    assert names(node) == [".training-", ".training-", "training"], "the deploy before has its own"
    node.does("75")
    assert names(node) == [".training-", "training"]


@pytest.mark.slow
@pytest.mark.root
def test_a_user_never_gets_the_scripts_place(node: Machine) -> None:
    fsx = node.root / "fsx"
    node.does("75")
    attack = subprocess.Popen([*AS_NOBODY, "bash", "-c", TAKES], cwd=fsx, stderr=subprocess.DEVNULL)
    try:
        for number in range(10):
            (node.bundle / "training" / "job.slurm").write_text(f"{number}\n")
            node.does("75")
            assert owners(fsx / "training") == {0}
            assert (fsx / "training" / "job.slurm").read_text() == f"{number}\n"
    finally:
        attack.kill()
        attack.wait()


@pytest.mark.root
def test_somebody_elses_scripts_are_replaced(node: Machine) -> None:
    training = node.root / "fsx" / "training"
    node.does("75")
    os.chown(training / "job.slurm", NOBODY, NOBODY)
    node.does("75")
    assert owners(training) == {0}


def test_every_workload_has_folders_and_a_lock(node: Machine) -> None:
    fsx = node.root / "fsx"
    lock = fsx / "datasets" / "gpt2" / ".prepare.lock"
    node.does("70")
    before = lock.stat().st_ino
    node.does("70")
    assert lock.stat().st_ino == before, "who waits for the old one would not wait for the new one"
    of_data = ("datasets/gpt2", "datasets/gpt2/downloads", "datasets/gpt2/models")
    for name in ("venvs", "runs", "runs/gpt2", *of_data, "checkpoints/gpt2"):
        assert mode(fsx / name) == 0o1777, name
    assert mode(lock) == 0o666
    if os.geteuid() == 0:
        for user in (AS_NOBODY, ("setpriv", "--reuid=12345", "--clear-groups"), ()):
            subprocess.run([*user, "flock", lock, "true"], check=True)
            # For writing, as flock opens it again where NFS refuses the first lock.
            subprocess.run([*user, "bash", "-c", 'exec 9<>"$1"', "_", lock], check=True)


def test_an_efs_in_use_keeps_its_mode(node: Machine) -> None:
    """/efs is a link into /home with home=efs; compute nodes leave the shared folders alone."""
    efs, home = node.root / "efs", node.root / "home" / "efs"
    efs.chmod(0o755)
    node.does("70", NODE_TYPE="ComputeFleet")
    assert list((node.root / "fsx").iterdir()) == []
    (efs / "theirs").touch()
    node.does("70")
    assert mode(efs) == 0o755
    (efs / "theirs").unlink()
    node.does("70")
    assert mode(efs) == 0o1777
    efs.rmdir()
    efs.symlink_to(home)
    node.does("70")
    assert mode(home) == 0o1777


@pytest.mark.root
def test_a_users_files_stay_and_are_reported(node: Machine) -> None:
    """A user's own folder is not opened, and no link is followed.

    FSx creates root's links below datasets/ from objects that a job uploads.
    """
    fsx, secret = node.root / "fsx", node.root / "secret"
    secret.mkdir(0o700)
    (fsx / "datasets").mkdir()
    (fsx / "datasets" / "gpt2").symlink_to(secret)
    os.lchown(fsx / "datasets" / "gpt2", NOBODY, NOBODY)
    (fsx / "images").symlink_to(secret)
    (fsx / "runs" / "gpt2").mkdir(0o700, parents=True)
    os.chown(fsx / "runs" / "gpt2", NOBODY, NOBODY)
    (fsx / "venvs").write_text("mine")
    os.chown(fsx / "venvs", NOBODY, NOBODY)
    output = node.does("70")
    for name, kind in {
        "venvs": "regular file of nobody",
        "images": "symbolic link of root",
        "runs/gpt2": "directory of nobody",
        "datasets/gpt2": "symbolic link of nobody",
    }.items():
        assert f"{fsx / name} exists already as a {kind}" in output
    assert ((fsx / "venvs").read_text(), (fsx / "venvs").stat().st_uid) == ("mine", NOBODY)
    assert (mode(fsx / "runs" / "gpt2"), mode(secret), list(secret.iterdir())) == (0o700, 0o700, [])
    assert (fsx / "checkpoints" / "gpt2").is_dir(), "the others are made"
    (fsx / "datasets" / "gpt2").unlink()
    node.does("70")
    os.chown(fsx / "datasets/gpt2/.prepare.lock", NOBODY, NOBODY)
    assert f"{fsx}/datasets/gpt2/.prepare.lock exists already as a regular" in node.does("70")


@pytest.mark.root
def test_of_several_people_one_makes_environments(node: Machine) -> None:
    """The cluster's own user makes those of all, which jobs run."""
    node.write("etc/parallelcluster/cfnconfig", "cfn_cluster_user=nobody\n")
    (node.bundle / "users").mkdir()
    venvs = node.root / "fsx" / "venvs"
    for _ in range(2):
        node.does("70")
        assert (venvs.stat().st_uid, mode(venvs)) == (NOBODY, 0o755)


LOGIN = "UMASK\t022\n#HOME_MODE\t0700\nHOME_MODE\t0750\n"
PROFILE = "etc/profile.d/training-cluster-directory.sh"


def test_a_directory_makes_homes_private(node: Machine) -> None:
    """Only the head node makes a folder, and without a directory only the profile goes."""
    directory, users = node.bundle / "directory", node.root / "fsx" / "users"
    directory.touch()
    node.write("etc/login.defs", LOGIN)
    node.program("sed", "echo 'read error' >&2; exit 4")
    fails(node.run("73"))
    assert node.text("etc/login.defs") == LOGIN
    (node.bin / "sed").unlink()
    node.does("73", NODE_TYPE="ComputeFleet")
    assert not users.exists()
    for _ in range(2):
        node.does("73")
        assert node.text("etc/login.defs") == "UMASK\t022\n#HOME_MODE\t0700\nHOME_MODE\t0700\n"
        assert "umask 077" in node.text(PROFILE)
        assert mode(users) == 0o1777
    directory.unlink()
    users.rmdir()
    node.does("73")
    assert not (node.root / PROFILE).exists()
    assert not users.exists()


@pytest.mark.root
def test_a_folder_that_a_user_made_stays_closed(node: Machine) -> None:
    (node.bundle / "directory").touch()
    folder = node.root / "fsx" / "users"
    folder.mkdir(mode=0o700)
    os.chown(folder, 1, 1)
    fails(node.run("73"), "fsx/users belongs to daemon")
    assert mode(folder) == 0o700
