"""Environments on the nodes' local disks: unpacked once a node, from the archive that fits their content."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.assets.training.waiting import read_until, until, wait_until
from training_cluster.paths import TRAINING

MAKE = 'make_environment "$1" "$TRAINING_VENVS/tiny"'
USE = 'python="$(environment_python "$1")"; echo "$python"; "$python" -c "import sys; print(sys.prefix)"'
MALLORY = 12345


class Job:
    """A workload, a shared folder and the local disks of a node."""

    def __init__(self, folder: Path) -> None:
        self.workload, self.venvs, self.scratch = folder / "tiny", folder / "venvs", folder / "scratch"
        for each in (self.workload, self.venvs, self.scratch):
            each.mkdir()
        self.scratch.chmod(0o1777)
        self.require("# one\n")

    def require(self, text: str) -> None:
        """Give the workload requirements that need no package."""
        (self.workload / "requirements.txt").write_text("")
        (self.workload / "install.sh").write_text(text)

    def start(self, code: str, **environment: str) -> subprocess.Popen[str]:
        """Start shell code on a node of a job of 16 nodes."""
        env = {
            "PATH": os.environ["PATH"],
            "TRAINING_PYTHON": sys.executable,
            "TRAINING_VENVS": str(self.venvs),
            "TRAINING_OPT": str(self.scratch / "no image"),
            "TRAINING_REHEARSAL": "1",
            "SCRATCH": str(self.scratch),
            "SLURM_JOB_NUM_NODES": "16",
        }
        return subprocess.Popen(
            ["bash", "-euc", f'source "{TRAINING}/launch.sh"; {code}', "_", str(self.workload)],
            env=env | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run shell code on such a node."""
        process = self.start(code, **environment)
        printed = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, *printed)

    def use(self, **environment: str) -> Path:
        """Return the folder of the environment that the ranks get."""
        done = self.run(USE, **environment)
        assert done.returncode == 0, done.stderr
        python, prefix = done.stdout.splitlines()
        assert Path(python) == Path(prefix) / "bin" / "python"
        return Path(prefix)

    def make(self, **environment: str) -> subprocess.CompletedProcess[str]:
        done = self.run(MAKE, **environment)
        assert done.returncode == 0, done.stderr
        return done

    def install_held(self) -> subprocess.Popen[str]:
        """Start a job that installs until a file `finish` exists; return once it installs."""
        busy, finish = (self.workload.with_name(name) for name in ("busy", "finish"))
        self.require(f"touch {busy}\n{until(str(finish))}\n")
        process = self.start(MAKE)
        wait_until(lambda: busy.exists() or process.poll() is not None, what="the job does not install")
        return process

    def archives(self) -> list[Path]:
        return sorted(self.venvs.glob("*.tar*"))

    @property
    def local(self) -> Path:
        return self.scratch / f"venvs-{os.geteuid()}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Return a workload whose environment is made, which takes seconds."""
    job = Job(tmp_path_factory.mktemp("shared"))
    job.make(LOCAL_ENVIRONMENT="no")
    return job


@pytest.fixture
def job(made: Job, tmp_path: Path) -> Job:
    """Return that workload without an archive, on a node with an empty disk."""
    for archive in made.archives():
        archive.unlink()
    made.scratch = tmp_path / "scratch"
    made.scratch.mkdir()
    made.scratch.chmod(0o1777)
    return made


@pytest.mark.slow
def test_ranks_of_a_large_job_run_the_environment_of_their_own_disk(job: Job) -> None:
    job.make()
    (archive,) = job.archives()
    own = job.use()
    assert own == job.local / archive.name.removesuffix(".tar")
    pip = own / "bin" / "pip"
    assert pip.read_text().splitlines()[0].startswith(f"#!{own}/bin/python")
    assert str(own) in subprocess.run([pip, "--version"], capture_output=True, text=True, check=True).stdout
    (own / "seen").touch()
    assert (job.use() / "seen").exists(), "it is unpacked once"
    assert "packing" not in job.make().stderr, "and packed once"


@pytest.mark.slow
def test_of_two_jobs_that_make_one_environment_one_waits(tmp_path: Path) -> None:
    job = Job(tmp_path)
    first = job.install_held()
    second = job.start(MAKE)
    read_until(second, "another job makes")
    (tmp_path / "finish").touch()
    said = [process.communicate()[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert "installing" not in said[1]


@pytest.mark.slow
def test_a_job_of_other_requirements_that_waited_does_not_install_them_over_those(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path)
    other = job.workload.with_name("other")
    other.mkdir()
    (other / "requirements.txt").write_text("")
    first = job.install_held()
    second = job.start(MAKE.replace("$1", str(other)))
    read_until(second, "another job makes")
    (tmp_path / "finish").touch()
    said = [process.communicate()[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 1), said
    assert f"another job has just made {job.venvs}/tiny from other requirements" in said[1]


@pytest.mark.slow
def test_another_content_has_another_archive(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.make()
    old, own = job.archives(), job.use()
    job.require("# two\n")
    job.make()
    assert len(job.archives()) == 1
    assert job.archives() != old
    assert job.use() != own


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{"SLURM_JOB_NUM_NODES": "15"}, {"LOCAL_ENVIRONMENT": "no"}, {"SCRATCH": ""}, {"SCRATCH": "/no/disk"}],
    ids=str,
)
def test_other_jobs_share_the_environment(job: Job, environment: dict[str, str]) -> None:
    job.make(**environment)
    assert job.archives() == []
    assert job.use(**environment) == job.venvs / "tiny"
    job.make()
    assert job.use(**environment) == job.venvs / "tiny"


@pytest.mark.slow
def test_interrupted_unpacking_begins_anew_and_ranks_wait_for_each_other(job: Job) -> None:
    job.make()
    name = job.archives()[0].name.removesuffix(".tar")
    torn = job.local / f"{name}.partial" / "bin"
    torn.mkdir(parents=True)
    (torn / "python").write_text("torn")
    with ThreadPoolExecutor() as threads:
        found = list(
            threads.map(lambda _: job.use(LOCAL_ENVIRONMENT="yes", SLURM_JOB_NUM_NODES="1"), range(4))
        )
    assert set(found) == {job.local / name}
    assert not torn.exists()


@pytest.mark.slow
def test_what_cannot_be_unpacked_is_used_where_it_is(job: Job) -> None:
    job.make()
    (archive,) = job.archives()
    archive.write_bytes(archive.read_bytes()[:20_000])
    done = job.run(USE)
    assert done.stdout.splitlines()[1] == str(job.venvs / "tiny")
    assert "is used from the shared folder" in done.stderr
    assert list(job.local.glob("*.partial")) == []


TRAIN = "import sys, trainkit, beside; print(*sys.path[:2], trainkit.__file__, beside.__file__, sep='\\n')"


@pytest.fixture
def scripts(tmp_path: Path) -> Job:
    """A workload that says where its modules are, with trainkit beside its folder."""
    job = Job(tmp_path)
    (job.workload / "train.py").write_text(TRAIN)
    (job.workload / "beside.py").write_text("")
    kit = job.workload.parent / "trainkit"
    kit.mkdir()
    (kit / "__init__.py").write_text("")
    return job


RANK = {"SLURM_JOB_ID": "7", "LAUNCHER": "srun", "NPROC_PER_NODE": "1", "MASTER_ADDR": "10.0.0.1"} | {
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "EXPECTED_WORLD_SIZE": "1",
}
STARTED = """\
supervise() { "$1" "${@:2}"; }
environment_python() { printf '%s\\n' "$TRAINING_PYTHON"; }
start_ranks "$1" "$1/train.py"
"""


def test_ranks_of_a_large_job_run_scripts_of_their_own_disk(scripts: Job) -> None:
    done = scripts.run(STARTED, **RANK)
    own = scripts.local / "scripts" / "7-0"
    assert done.stdout.splitlines() == [
        str(own / "tiny"),
        str(own),
        str(own / "trainkit" / "__init__.py"),
        str(own / "tiny" / "beside.py"),
    ], done.stderr
    (scripts.workload / "beside.py").write_text("changed = True")
    assert scripts.run(STARTED, **RANK).stdout == done.stdout
    assert (own / "tiny" / "beside.py").read_text() == "", "a start keeps the scripts with which it began"
    again = scripts.run(STARTED, **RANK, SLURM_RESTART_COUNT="1")
    assert str(scripts.local / "scripts" / "7-1" / "tiny") in again.stdout


@pytest.mark.parametrize(
    "environment", [{"SLURM_JOB_NUM_NODES": "2"}, {"LOCAL_ENVIRONMENT": "no"}, {"SLURM_JOB_ID": ""}], ids=str
)
def test_ranks_of_other_jobs_run_the_shared_scripts(scripts: Job, environment: dict[str, str]) -> None:
    done = scripts.run(STARTED, **(RANK | environment))
    assert done.stdout.startswith(f"{scripts.workload}\n"), done.stderr
    assert not scripts.local.exists()


def test_scripts_that_cannot_be_copied_are_used_where_they_are(scripts: Job) -> None:
    scripts.local.mkdir()
    (scripts.local / "scripts").touch()
    done = scripts.run(STARTED, **RANK)
    assert done.stdout.startswith(f"{scripts.workload}\n"), done.stderr
    assert "is used from the shared folder" in done.stderr


@pytest.mark.slow
@pytest.mark.root
def test_a_folder_of_another_user_on_the_disk_is_not_used(job: Job) -> None:
    job.make()
    job.local.mkdir(mode=0o755)
    os.chown(job.local, MALLORY, MALLORY)
    done = job.run(USE)
    assert done.stdout.splitlines()[1] == str(job.venvs / "tiny")
    assert "is used from the shared folder" in done.stderr
