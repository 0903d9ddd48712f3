"""job.slurm and the workloads' scripts, run for real with wrong input; no Slurm is needed to be refused."""

import os
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import bash
from training_cluster.paths import TRAINING

# In the order of the paths, as bash has them.
NAMES = [Path(path).parent.name for path in sorted(map(str, TRAINING.glob("*/train.sh")))]
# Root without the right to write where its folders' modes say no.
AS_A_USER = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A shared folder with the scripts in it."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "training").symlink_to(TRAINING)
    return tmp_path / "shared"


def assert_refused(script: Path, *arguments: str, words: tuple[str, ...], **environment: str) -> None:
    """Assert that a script ends with one message in two lines that have these words."""
    done = bash('exec bash "$@"', script, *arguments, user=AS_A_USER, **environment)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 2), done.stderr
    assert [each for each in words if each not in done.stderr] == []


def assert_job_refused(shared: Path, *arguments: str, words: tuple[str, ...], **environment: str) -> None:
    environment = {"TRAINING_SHARED": str(shared)} | environment
    assert_refused(TRAINING / "job.slurm", *arguments, words=words, **environment)


def test_a_wrong_job_is_refused(shared: Path) -> None:
    there_are = f"there are: {' '.join(NAMES)}"
    usage = f"Type: sbatch --nodes 2 {shared}/training/job.slurm WORKLOAD; {there_are}"
    assert_job_refused(shared, words=("no workload is given", usage))
    for name in ("gpt3", "../training/gpt2", "job.slurm", "-h"):
        assert_job_refused(shared, name, words=(f"there is no workload '{name}'", there_are))
    for name in ("..", "a/b", "-x", "two words", ".hidden"):
        words = (f"RUN_NAME is '{name}'", "RUN_NAME=small-model")
        assert_job_refused(shared, "gpt2", RUN_NAME=name, words=words)
    assert_job_refused(shared, "gpt2", words=("this is not a batch job of Slurm", "sbatch --nodes 2"))
    words = ("/nowhere/partitions/cpu.env of this partition", "TRAINING_ETC=/folder sbatch")
    batch = {"SLURM_JOB_PARTITION": "cpu", "SLURMD_NODENAME": "n1"}
    assert_job_refused(shared, "gpt2", TRAINING_ETC="/nowhere", **batch, words=words)


def test_a_wrong_shared_folder_is_refused(shared: Path) -> None:
    """The folders that the bootstrap makes are enough where the shared folder is root's."""
    words = ("no shared folder /nowhere", "TRAINING_SHARED=")
    assert_job_refused(shared, "gpt2", TRAINING_SHARED="/nowhere", words=words)
    shared.chmod(0o555)
    words = (f"may not write to the shared folder {shared}/runs", "chmod")
    assert_job_refused(shared, "gpt2", words=words)
    shared.chmod(0o755)
    for name in ("runs", "datasets", "checkpoints"):
        (shared / name).mkdir()
    shared.chmod(0o555)
    assert_job_refused(shared, "gpt2", words=("this is not a batch job of Slurm",))
    shared.chmod(0o755)


def test_gpt2_refuses_trainium_and_an_old_python(tmp_path: Path) -> None:
    trainium = {"ACCELERATOR_KIND": "neuron", "FAMILY": "trn1"}
    refused = ("gpt2 runs on GPUs and CPUs, not on the trn1 family",)
    assert_refused(TRAINING / "gpt2" / "train.sh", words=refused, **trainium)
    folders = {"TRAINING_VENVS": str(tmp_path), "DATA_DIR": str(tmp_path)}
    words = ("no Python 3.10 3.11 3.12 3.13", "for the environment of gpt2", "TRAINING_PYTHON=")
    assert_refused(TRAINING / "gpt2" / "prepare.sh", words=words, TRAINING_PYTHON="python0", **folders)
    assert not (tmp_path / "gpt2").exists()
