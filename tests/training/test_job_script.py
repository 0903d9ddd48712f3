"""job.slurm and the gpt2 scripts, run for real with wrong input; no Slurm is needed to be refused."""

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TRAINING = Path(__file__).parents[2] / "assets" / "training"
GPT2 = TRAINING / "gpt2"
FAMILY = """\
export FAMILY=m6i
export RANKS_PER_NODE=1
export ACCELERATOR_KIND=none
export MIXED_PRECISION=no
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A shared folder with the scripts in it, and a node's settings beside."""
    shutil.copytree(TRAINING, tmp_path / "shared" / "training")
    partitions = tmp_path / "etc" / "partitions"
    partitions.mkdir(parents=True)
    (partitions / "cpu.env").write_text(FAMILY, encoding="utf-8")
    return tmp_path / "shared"


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "TRAINING"))}
    return subprocess.run(
        ["bash", str(script), *arguments],
        env=clean | environment,
        check=False,
        capture_output=True,
        text=True,
    )


def job(shared: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    folders = {
        "TRAINING_SHARED": str(shared),
        "TRAINING_ETC": str(shared.parent / "etc"),
    }
    return run(TRAINING / "job.slurm", *arguments, **(folders | environment))


def assert_refused(done: subprocess.CompletedProcess[str], *said: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 2, done.stderr
    for text in said:
        assert text in done.stderr


def test_no_workload_is_refused_and_those_that_there_are_are_named(shared: Path) -> None:
    usage = f"Type: sbatch --nodes 2 {shared}/training/job.slurm WORKLOAD; there are: gpt2"
    assert_refused(job(shared), "no workload is given", usage)


@pytest.mark.parametrize("name", ["gpt3", "../training/gpt2", "job.slurm", "-h"])
def test_an_unknown_workload_is_refused_and_those_that_there_are_are_named(shared: Path, name: str) -> None:
    assert_refused(job(shared, name), f"there is no workload '{name}'", "there are: gpt2")


def test_missing_node_settings_are_refused_with_their_place(shared: Path) -> None:
    done = job(shared, "gpt2", TRAINING_ETC="/nowhere", SLURM_JOB_PARTITION="cpu")
    assert_refused(done, "/nowhere/partitions/cpu.env of this partition", "TRAINING_ETC=/folder sbatch")


def test_a_missing_shared_folder_is_refused_with_its_name(shared: Path) -> None:
    assert_refused(
        job(shared, "gpt2", TRAINING_SHARED="/nowhere"), "no shared folder /nowhere", "TRAINING_SHARED="
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_shared_folder_that_cannot_be_written_is_refused(shared: Path) -> None:
    shared.chmod(0o555)
    done = job(shared, "gpt2")
    shared.chmod(0o755)
    assert_refused(done, f"may not write to the shared folder {shared}/runs", "chmod")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folders_that_the_bootstrap_made_are_enough_where_the_shared_folder_is_roots(shared: Path) -> None:
    for name in ("runs", "datasets", "checkpoints"):
        (shared / name).mkdir()
    shared.chmod(0o555)
    done = job(shared, "gpt2")
    shared.chmod(0o755)
    assert_refused(done, "this is no Slurm job")


def test_outside_slurm_the_job_script_says_how_to_submit_it(shared: Path) -> None:
    assert_refused(job(shared, "gpt2"), "this is no Slurm job", "sbatch --nodes 2")


def test_gpt2_refuses_trainium_with_a_reason() -> None:
    done = run(GPT2 / "train.sh", ACCELERATOR_KIND="neuron", FAMILY="trn1")
    assert_refused(done, "gpt2 runs on GPUs and CPUs, not on the trn1 family", "another workload")


def test_gpt2_without_a_new_enough_python_says_so(tmp_path: Path) -> None:
    done = run(
        GPT2 / "prepare.sh", TRAINING_VENVS=str(tmp_path), DATA_DIR=str(tmp_path), TRAINING_PYTHON="python0"
    )
    assert_refused(done, "no Python 3.10 or newer", "TRAINING_PYTHON=")
    assert list(tmp_path.iterdir()) == []


def test_every_requirement_is_pinned() -> None:
    lines = (GPT2 / "requirements.txt").read_text(encoding="utf-8").splitlines()
    requirements = [line for line in lines if line and not line.startswith("#")]
    assert len(requirements) >= 5
    for line in requirements:
        assert re.match(r"[a-z]+==\d+(\.\d+)+( ;|$)", line), line


def test_a_rehearsal_changes_sizes_and_device_and_nothing_else() -> None:
    """Every name in rehearsal.env is a setting of train.py, or says how many ranks and threads there are."""
    tree = ast.parse((GPT2 / "train.py").read_text(encoding="utf-8"))
    (settings,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    fields = {
        node.target.id.upper()
        for node in settings.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    rehearsal = (GPT2 / "rehearsal.env").read_text(encoding="utf-8")
    names = set(re.findall(r"^export (\w+)=", rehearsal, flags=re.MULTILINE))
    assert "MAX_STEPS" in names & fields
    assert names - fields == {"NPROC_PER_NODE", "OMP_NUM_THREADS"}


def test_the_scripts_that_ship_import_none_of_ours() -> None:
    for file in TRAINING.rglob("*.py"):
        assert not re.search(r"(from|import) (training_cluster|rehearsal|ops|stacks)\b", file.read_text()), (
            file
        )
