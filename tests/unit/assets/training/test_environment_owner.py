"""Environments in shared folders: no job runs code that another user of the cluster put there."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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
        (self.workload / "requirements.txt").write_text("# Recipes: all\n# Budget: 600 s\n")
        self.venv = self.venvs / "tiny"

    def make(self, owner: int, *, at: Path | None = None) -> Path:
        """Make a complete environment of that user, whose python reports that it ran."""
        venv = at or self.venv
        (venv / "bin").mkdir(parents=True)
        python = venv / "bin" / "python"
        python.write_text(f"#!/bin/sh\ntouch {self.ran}/$(id -u)\n")
        python.chmod(0o755)
        content = self.bash('environment_content "$1"').stdout
        (venv / "requirements.sha256").write_text(content)
        for path in (venv, *venv.rglob("*")):
            os.chown(path, owner, owner)
        return venv

    def bash(self, code: str, *user: str, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": os.environ["PATH"],
            "TRAINING_VENVS": str(self.venvs),
            "TRAINING_OPT": str(self.folder / "opt"),
            "TRAINING_ROOT": str(self.folder),
        }
        return subprocess.run(
            [*user, "bash", "-euc", f'source "{TRAINING}/environment.sh"; {code}', "_", str(self.workload)],
            env=env | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def has_run(self) -> bool:
        return any(self.ran.iterdir())


@pytest.fixture
def shared() -> Iterator[Shared]:
    """A folder below /tmp, which other users can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Shared(Path(name))


@pytest.mark.parametrize("code", [FIND, MAKE])
@pytest.mark.parametrize("victim", [AS_VICTIM, ()])
def test_an_environment_of_another_user_is_refused_and_nothing_in_it_runs(
    shared: Shared, code: str, victim: tuple[str, ...]
) -> None:
    shared.make(MALLORY)
    done = shared.bash(code, *victim)
    assert done.returncode != 0
    assert f"{shared.venv} on " in done.stderr
    assert "could run code as" in done.stderr
    assert "Allowed owners: " in done.stderr
    assert "TRAINING_VENVS=/folder sbatch ..., or have it removed: sudo rm -r" in done.stderr
    assert not shared.has_run()


@pytest.mark.parametrize("owner", [0, VICTIM])
def test_environments_of_root_and_of_the_user_are_taken(shared: Shared, owner: int) -> None:
    shared.make(owner)
    done = shared.bash(f"{FIND}; {MAKE}", *AS_VICTIM)
    assert (done.returncode, done.stdout) == (0, f"{shared.venv}\n"), done.stderr
    assert shared.has_run()


def test_an_environment_that_a_running_job_may_use_stays_when_the_packages_change(shared: Shared) -> None:
    shared.make(0)
    (shared.workload / "requirements.txt").write_text("# Recipes: all\n# Budget: 600 s\nnew==1\n")
    content = shared.bash('environment_content "$1"').stdout
    changed = shared.venvs / f"tiny-{content[:8]}"
    assert shared.bash(FIND).stdout == f"{changed}\n"
    shared.make(0, at=changed)
    assert shared.bash(FIND).stdout == f"{changed}\n"
    (shared.workload / "requirements.txt").write_text("# Recipes: all\n# Budget: 600 s\n")
    assert shared.bash(FIND).stdout == f"{shared.venv}\n", "the first one serves its own content again"


def test_an_environment_of_the_clusters_user_who_has_sudo_is_taken(shared: Shared) -> None:
    shared.make(1)
    config = shared.folder / "etc" / "parallelcluster" / "cfnconfig"
    config.parent.mkdir(parents=True)
    config.write_text("cfn_node_type=ComputeFleet\ncfn_cluster_user=ubuntu\n")
    assert "Allowed owners: nobody root ubuntu." in shared.bash(MAKE, *AS_VICTIM).stderr
    config.write_text("cfn_node_type=ComputeFleet\ncfn_cluster_user=daemon\n")
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode == 0, done.stderr


def test_a_link_of_another_user_is_refused_also_if_its_target_is_roots(shared: Shared) -> None:
    target = shared.make(0, at=shared.folder / "opt" / "elsewhere")
    shared.venv.symlink_to(target)
    os.chown(shared.venv, MALLORY, MALLORY, follow_symlinks=False)
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode != 0
    assert f"{shared.venv} on " in done.stderr
    assert not shared.has_run()


def test_a_link_to_an_environment_below_a_folder_of_another_user_is_refused(shared: Shared) -> None:
    theirs = shared.folder / "theirs"
    shared.venv.symlink_to(shared.make(0, at=theirs / "tiny"))
    os.chown(theirs, MALLORY, MALLORY)
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode != 0
    assert f"{theirs} on " in done.stderr
    assert not shared.has_run()


def test_a_link_to_an_environment_into_which_others_may_write_is_refused(shared: Shared) -> None:
    """Who may write there can add a pyvenv.cfg, which says where Python's own modules are."""
    target = shared.make(0, at=shared.folder / "opt" / "elsewhere")
    target.chmod(0o777)
    shared.venv.symlink_to(target)
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode != 0
    assert f"chmod go-w {shared.venv}/.\n" in done.stderr
    assert not shared.has_run()


@pytest.mark.parametrize("above", ["fsx/venvs", "fsx"])
def test_a_folder_above_that_another_user_made_is_refused(shared: Shared, above: str) -> None:
    shared.make(0)
    os.chown(shared.folder / above, MALLORY, MALLORY)
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode != 0
    assert f"{shared.folder / above} on " in done.stderr
    assert not shared.has_run()


@pytest.mark.parametrize("name", ["datasets/venvs", "link"])
def test_roots_environment_among_the_datasets_is_refused(shared: Shared, name: str) -> None:
    """Every job can make it: FSx takes the owner from an object's metadata."""
    fsx = shared.venvs.parent
    (fsx / "link").symlink_to(fsx / "datasets" / "venvs")
    shared.make(0, at=fsx / "datasets" / "venvs" / "tiny")
    done = shared.bash(FIND, *AS_VICTIM, TRAINING_SHARED=str(fsx), TRAINING_VENVS=str(fsx / name))
    assert done.returncode != 0
    assert f"is in {fsx}/datasets, where every job can write files of any owner" in done.stderr
    assert not shared.has_run()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
@pytest.mark.parametrize("inside", ["", "bin", "bin/python"])
def test_an_environment_into_which_others_may_write_is_refused(
    shared: Shared, inside: str, mode: int
) -> None:
    shared.make(0)
    path = shared.venv / inside
    os.chown(path, 0, MALLORY)
    path.chmod(mode)
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode != 0
    assert f"chmod go-w {str(path).rstrip('/')}\n" in done.stderr
    assert not shared.has_run()


def test_a_folder_above_without_the_sticky_bit_is_refused(shared: Shared) -> None:
    shared.make(0)
    shared.venvs.chmod(0o777)
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode != 0
    assert f"chmod go-w {shared.venvs}\n" in done.stderr


def test_a_folder_that_its_owners_private_group_may_write_is_taken(shared: Shared) -> None:
    shared.make(0)
    shared.venv.chmod(0o775)
    done = shared.bash(MAKE, *AS_VICTIM)
    assert done.returncode == 0, done.stderr


def test_a_new_environment_is_not_made_in_a_folder_that_appears_at_that_moment(shared: Shared) -> None:
    """Mallory's folder appears after the first look, in the place of `mkdir`."""
    theirs = f'if [[ $made == "$TRAINING_VENVS/tiny" ]]; then chown {MALLORY} "$made"; fi'
    race = f'mkdir() {{ local -r made="${{@: -1}}"; command mkdir -p "$made"; {theirs}; }}; '
    done = shared.bash(race + MAKE)
    assert done.returncode != 0
    assert f"{shared.venv} on " in done.stderr
    assert not any(shared.venv.iterdir())


def test_a_user_takes_the_environment_of_all_that_root_made_and_no_other_users(shared: Shared) -> None:
    own = shared.folder / "own"
    own.mkdir()
    variables = {"TRAINING_VENVS": str(own), "TRAINING_SHARED": str(shared.venvs.parent)}
    assert shared.bash(FIND, *AS_VICTIM, **variables).stdout == f"{own}/tiny\n"
    shared.make(MALLORY)
    found = shared.bash(FIND, *AS_VICTIM, **variables)
    assert (found.stdout, found.stderr) == (f"{own}/tiny\n", "")
    assert not shared.has_run()
    for path in (shared.venv, *shared.venv.rglob("*")):
        os.chown(path, 0, 0)
    assert shared.bash(FIND, *AS_VICTIM, **variables).stdout == f"{shared.venv}\n"
