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

    def assert_shared(self) -> None:
        """Assert that ranks get the shared environment, with a line about it."""
        done = self.run(USE)
        assert done.stdout.splitlines()[1] == str(self.venvs / "tiny")
        assert "is used from the shared folder" in done.stderr

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
def test_large_jobs_run_environments_of_local_disks(job: Job) -> None:
    assert "could not be packed" not in job.make().stderr
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
def test_jobs_wait_for_one_environment(tmp_path: Path) -> None:
    """One of other requirements does not install them over those."""
    job = Job(tmp_path)
    other = job.workload.with_name("other")
    other.mkdir()
    (other / "requirements.txt").write_text("")
    busy, finish = tmp_path / "busy", tmp_path / "finish"
    job.require(f"touch {busy}\n{until(str(finish))}\n")
    jobs = [job.start(MAKE)]
    wait_until(lambda: busy.exists() or jobs[0].poll() is not None, what="the job does not install")
    jobs += [job.start(MAKE), job.start(MAKE.replace("$1", str(other)))]
    for each in jobs[1:]:
        read_until(each, "another job makes")
    finish.touch()
    outputs = [process.communicate()[1] for process in jobs]
    assert [process.returncode for process in jobs] == [0, 0, 1], outputs
    assert "installing" not in outputs[1]
    assert f"another job has just made {job.venvs}/tiny from other requirements" in outputs[2]
    old, own = job.archives(), job.use()
    job.require("# two\n")
    job.make()
    assert (len(job.archives()), job.archives() == old, job.use() == own) == (1, False, False)


@pytest.mark.slow
def test_other_jobs_share_the_environment(job: Job) -> None:
    small = {"SLURM_JOB_NUM_NODES": "15"}
    for environment in (small, {"LOCAL_ENVIRONMENT": "no"}, {"SCRATCH": ""}, {"SCRATCH": "/no/disk"}):
        job.make(**environment)
        assert (job.archives(), job.use(**environment)) == ([], job.venvs / "tiny")
    job.make()
    assert job.use(**small) == job.venvs / "tiny"


@pytest.mark.slow
def test_interrupted_unpacking_begins_anew(job: Job) -> None:
    """Ranks of one node wait for each other."""
    job.make()
    name = job.archives()[0].name.removesuffix(".tar")
    torn = job.local / f"{name}.partial" / "bin"
    torn.mkdir(parents=True)
    (torn / "python").write_text("torn")
    small = {"LOCAL_ENVIRONMENT": "yes", "SLURM_JOB_NUM_NODES": "1"}
    with ThreadPoolExecutor() as threads:
        found = set(threads.map(lambda _: job.use(**small), range(4)))
    assert (found, torn.exists()) == ({job.local / name}, False)


@pytest.mark.slow
def test_a_broken_archive_is_not_used(job: Job) -> None:
    job.make()
    (archive,) = job.archives()
    archive.write_bytes(archive.read_bytes()[:20_000])
    job.assert_shared()
    assert list(job.local.glob("*.partial")) == []


@pytest.mark.slow
@pytest.mark.root
def test_another_users_folder_is_not_used(job: Job) -> None:
    job.make()
    job.local.mkdir(mode=0o755)
    os.chown(job.local, MALLORY, MALLORY)
    job.assert_shared()


TRAIN = "import sys, trainkit, beside; print(*sys.path[:2], trainkit.__file__, beside.__file__, sep='\\n')"
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


def test_large_jobs_run_scripts_of_local_disks(tmp_path: Path) -> None:
    job = Job(tmp_path)
    (job.workload / "train.py").write_text(TRAIN)
    (job.workload / "beside.py").write_text("")
    kit = job.workload.with_name("trainkit")
    kit.mkdir()
    (kit / "__init__.py").write_text("")
    for others in ({"SLURM_JOB_NUM_NODES": "2"}, {"LOCAL_ENVIRONMENT": "no"}, {"SLURM_JOB_ID": ""}):
        done = job.run(STARTED, **(RANK | others))
        assert (done.stdout.startswith(f"{job.workload}\n"), job.local.exists()) == (True, False), done.stderr
    job.local.mkdir()
    (job.local / "scripts").touch()
    done = job.run(STARTED, **RANK)
    assert (done.stdout.startswith(f"{job.workload}\n"), "shared folder" in done.stderr) == (True, True)
    (job.local / "scripts").unlink()
    done = job.run(STARTED, **RANK)
    own = job.local / "scripts" / "7-0"
    paths = [own / "tiny", own, own / "trainkit" / "__init__.py", own / "tiny" / "beside.py"]
    assert done.stdout.splitlines() == [str(path) for path in paths], done.stderr
    (job.workload / "beside.py").write_text("changed = True")
    assert job.run(STARTED, **RANK).stdout == done.stdout
    assert (own / "tiny" / "beside.py").read_text() == "", "a start keeps the scripts with which it began"
    again = job.run(STARTED, **RANK, START_NUMBER="1")
    assert str(job.local / "scripts" / "7-1" / "tiny") in again.stdout


def test_a_node_says_whether_it_takes_a_file(tmp_path: Path) -> None:
    """It completes what sbcast has sent; an environment that was unpacked stands for its archive."""
    job = Job(tmp_path)

    def said(name: str = "tiny.1.tar", size: int = 5) -> str:
        take = f'bash "{TRAINING}/broadcast.sh" take {name} {size}'
        return job.run(take, SLURM_JOB_ID="7", SLURMD_NODENAME="n1").stdout

    assert said() == "n1 lacks\n"
    (job.local / "tiny.1.tar.7.sbcast").write_text("half")
    assert said() == "n1 lacks\n"
    (job.local / "tiny.1.tar.7.sbcast").write_text("whole")
    assert said() == said() == "n1 has\n"
    assert [path.name for path in job.local.iterdir()] == ["tiny.1.tar"]
    (job.local / "tiny.1").mkdir()
    assert said(size=10**15) == "n1 has\n"
    assert said("image.sqsh", 10**15) == f"n1 has no room for it in {job.scratch}\n"
    job.local.chmod(0o777)
    assert said("image.sqsh") == f"n1 has no folder of your own in {job.scratch}\n"
