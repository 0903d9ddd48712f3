"""Environments in shared folders: no job runs code that another user of the cluster put there."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import bash
from training_cluster.paths import TRAINING

pytestmark = pytest.mark.root

MALLORY, VICTIM = 12345, 65534
AS_VICTIM = ("setpriv", f"--reuid={VICTIM}", f"--regid={VICTIM}", "--clear-groups")
FIND = 'environment_of "$1"'
MAKE = 'make_environment "$1" "$TRAINING_VENVS/tiny"'


class Shared:
    """A shared folder as a head node makes it, and an environment in it that says who runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.venvs, self.ran = folder, folder / "fsx" / "venvs", folder / "ran"
        folder.chmod(0o755)
        self.ran.mkdir()
        self.ran.chmod(0o777)
        self.venvs.mkdir(parents=True)
        for each in (self.venvs.parent, self.venvs):
            each.chmod(0o1777)
        self.workload = folder / "tiny"
        self.workload.mkdir()
        self.require("")
        self.venv = self.venvs / "tiny"

    def require(self, packages: str) -> None:
        (self.workload / "requirements.txt").write_text(packages + "\n")

    def make(self, owner: int, *, at: Path | None = None) -> Path:
        """Make a complete environment of that user, whose python reports that it ran."""
        venv = at or self.venv
        (venv / "bin").mkdir(parents=True)
        python = venv / "bin" / "python"
        python.write_text(f"#!/bin/sh\ntouch {self.ran}/$(id -u)\n")
        python.chmod(0o755)
        (venv / "requirements.sha256").write_text(self.bash('environment_content "$1"').stdout)
        for path in (venv, *venv.rglob("*")):
            os.chown(path, owner, owner)
        return venv

    def remove(self) -> None:
        """Remove the environment and the report of its python."""
        for folder in (self.venv, self.ran):
            shutil.rmtree(folder)
        self.ran.mkdir()
        self.ran.chmod(0o777)

    def bash(self, code: str, *user: str, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {
            "TRAINING_VENVS": str(self.venvs),
            "TRAINING_OPT": str(self.folder / "opt"),
            "TRAINING_ROOT": str(self.folder),
        }
        script = f'source "{TRAINING}/environment.sh"; {code}'
        return bash(script, self.workload, user=user, **(env | environment))

    def assert_refused(self, *words: str, code: str = MAKE, **environment: str) -> None:
        """Assert that a job of the victim ends with these words, and runs nothing of the environment."""
        done = self.bash(code, *AS_VICTIM, **environment)
        assert (done.returncode, [word for word in words if word not in done.stderr]) == (1, []), done.stderr
        assert not any(self.ran.iterdir())


@pytest.fixture
def shared() -> Iterator[Shared]:
    """A folder below /tmp, which other users can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Shared(Path(name))


def test_another_users_environment_is_refused(shared: Shared) -> None:
    shared.make(MALLORY)
    mend = "TRAINING_VENVS=/folder sbatch ..., or have it removed: sudo rm -r"
    for code in (FIND, MAKE):
        shared.assert_refused(f"{shared.venv} on ", "could run code as", "Allowed owners: ", mend, code=code)
    assert shared.bash(MAKE).returncode == 1, "of root as well"


def test_root_and_the_user_are_trusted(shared: Shared) -> None:
    """So is a group with its owner's name, which has no other member, and the cluster's own user."""
    for owner, mode in ((0, 0o775), (VICTIM, 0o755)):
        shared.make(owner)
        shared.venv.chmod(mode)
        done = shared.bash(f"{FIND}; {MAKE}", *AS_VICTIM)
        assert (done.returncode, done.stdout) == (0, f"{shared.venv}\n"), done.stderr
        assert any(shared.ran.iterdir())
        shared.remove()
    shared.make(1)
    config = shared.folder / "etc" / "parallelcluster" / "cfnconfig"
    config.parent.mkdir(parents=True)
    config.write_text("cfn_node_type=ComputeFleet\ncfn_cluster_user=ubuntu\n")
    shared.assert_refused("Allowed owners: nobody root ubuntu.")
    config.write_text("cfn_node_type=ComputeFleet\ncfn_cluster_user=daemon\n")
    assert shared.bash(MAKE, *AS_VICTIM).returncode == 0


def test_changed_packages_spare_a_running_job(shared: Shared) -> None:
    shared.make(0)
    shared.require("new==1")
    content = shared.bash('environment_content "$1"').stdout
    changed = shared.venvs / f"tiny-{content[:8]}"
    assert shared.bash(FIND).stdout == f"{changed}\n"
    shared.make(0, at=changed)
    assert shared.bash(FIND).stdout == f"{changed}\n"
    shared.require("")
    assert shared.bash(FIND).stdout == f"{shared.venv}\n", "the first one serves its own content again"


def test_another_users_link_or_folder_is_refused(shared: Shared) -> None:
    elsewhere, fsx = shared.folder / "elsewhere", shared.venvs.parent
    shared.venv.symlink_to(shared.make(0, at=elsewhere / "tiny"))
    for theirs in (shared.venv, elsewhere, shared.venvs, fsx):
        os.chown(theirs, MALLORY, MALLORY, follow_symlinks=False)
        shared.assert_refused(f"{theirs} on ")
        os.chown(theirs, 0, 0, follow_symlinks=False)
    # Who may write there can add a pyvenv.cfg, which says where Python's own modules are.
    shared.venv.readlink().chmod(0o777)
    shared.assert_refused(f"chmod go-w {shared.venv}/.\n")


def test_an_environment_among_the_datasets_is_refused(shared: Shared) -> None:
    """Every job can make it: FSx takes the owner from an object's metadata."""
    fsx = shared.venvs.parent
    (fsx / "link").symlink_to(fsx / "datasets" / "venvs")
    shared.make(0, at=fsx / "datasets" / "venvs" / "tiny")
    words = f"is in {fsx}/datasets, where every job can write files of any owner"
    for name in ("datasets/venvs", "link"):
        settings = {"TRAINING_SHARED": str(fsx), "TRAINING_VENVS": str(fsx / name)}
        shared.assert_refused(words, code=FIND, **settings)


def test_what_others_may_write_is_refused(shared: Shared) -> None:
    """A parent folder may be sticky, since files in it then have no other owner."""
    shared.make(0)
    for path in (shared.venv, shared.venv / "bin", shared.venv / "bin" / "python", shared.venvs):
        os.chown(path, 0, MALLORY)
        mode = path.stat().st_mode & 0o7777
        for open_mode in (0o777, 0o1777, 0o775)[:: 2 if path == shared.venvs else 1]:
            path.chmod(open_mode)
            shared.assert_refused(f"chmod go-w {path}\n")
        path.chmod(mode)


def test_a_folder_that_appears_meanwhile_is_refused(shared: Shared) -> None:
    """Mallory's folder appears after the first look, in the place of `mkdir`."""
    theirs = f'if [[ $made == "$TRAINING_VENVS/tiny" ]]; then chown {MALLORY} "$made"; fi'
    race = f'mkdir() {{ local -r made="${{@: -1}}"; command mkdir -p "$made"; {theirs}; }}; '
    done = shared.bash(race + MAKE)
    assert (done.returncode, f"{shared.venv} on " in done.stderr) == (1, True)
    assert not any(shared.venv.iterdir())


def test_roots_environment_of_all_is_taken(shared: Shared) -> None:
    own = shared.folder / "own"
    own.mkdir()
    variables = {"TRAINING_VENVS": str(own), "TRAINING_SHARED": str(shared.venvs.parent)}
    assert shared.bash(FIND, *AS_VICTIM, **variables).stdout == f"{own}/tiny\n"
    shared.make(MALLORY)
    found = shared.bash(FIND, *AS_VICTIM, **variables)
    assert (found.stdout, found.stderr) == (f"{own}/tiny\n", "")
    assert not any(shared.ran.iterdir())
    for path in (shared.venv, *shared.venv.rglob("*")):
        os.chown(path, 0, 0)
    assert shared.bash(FIND, *AS_VICTIM, **variables).stdout == f"{shared.venv}\n"
