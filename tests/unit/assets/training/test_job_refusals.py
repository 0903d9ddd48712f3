"""job.slurm and the workloads' scripts, run for real with wrong input; no Slurm is needed to be refused."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path
from training_cluster.paths import TRAINING

GPT2 = TRAINING / "gpt2"
# In the order of the paths, as bash has them.
NAMES = [Path(path).parent.name for path in sorted(map(str, TRAINING.glob("*/train.sh")))]
# Root without the right to write where its folders' modes say no.
AS_A_USER = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()
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
        [*AS_A_USER, "bash", str(script), *arguments],
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
    usage = f"Type: sbatch --nodes 2 {shared}/training/job.slurm WORKLOAD; there are: {' '.join(NAMES)}"
    assert_refused(job(shared), "no workload is given", usage)


@pytest.mark.parametrize("name", ["gpt3", "../training/gpt2", "job.slurm", "-h"])
def test_an_unknown_workload_is_refused_and_those_that_there_are_are_named(shared: Path, name: str) -> None:
    assert_refused(job(shared, name), f"there is no workload '{name}'", f"there are: {' '.join(NAMES)}")


@pytest.mark.parametrize("name", ["..", "a/b", "-x", "two words", ".hidden"])
def test_a_run_name_that_cannot_be_a_folder_of_its_own_is_refused(shared: Path, name: str) -> None:
    assert_refused(job(shared, "gpt2", RUN_NAME=name), f"RUN_NAME is '{name}'", "RUN_NAME=small-model")


def test_missing_node_settings_are_refused_with_their_place(shared: Path) -> None:
    done = job(shared, "gpt2", TRAINING_ETC="/nowhere", SLURM_JOB_PARTITION="cpu")
    assert_refused(done, "/nowhere/partitions/cpu.env of this partition", "TRAINING_ETC=/folder sbatch")


def test_a_missing_shared_folder_is_refused_with_its_name(shared: Path) -> None:
    assert_refused(
        job(shared, "gpt2", TRAINING_SHARED="/nowhere"), "no shared folder /nowhere", "TRAINING_SHARED="
    )


def test_a_shared_folder_that_cannot_be_written_is_refused(shared: Path) -> None:
    shared.chmod(0o555)
    done = job(shared, "gpt2")
    shared.chmod(0o755)
    assert_refused(done, f"may not write to the shared folder {shared}/runs", "chmod")


def test_folders_that_the_bootstrap_made_are_enough_where_the_shared_folder_is_roots(shared: Path) -> None:
    for name in ("runs", "datasets", "checkpoints"):
        (shared / name).mkdir()
    shared.chmod(0o555)
    done = job(shared, "gpt2")
    shared.chmod(0o755)
    assert_refused(done, "this is no Slurm job")


def test_outside_slurm_the_job_script_says_how_to_submit_it(shared: Path) -> None:
    assert_refused(job(shared, "gpt2"), "this is no Slurm job", "sbatch --nodes 2")


def test_gpt2_without_a_new_enough_python_says_so(tmp_path: Path) -> None:
    done = run(
        GPT2 / "prepare.sh", TRAINING_VENVS=str(tmp_path), DATA_DIR=str(tmp_path), TRAINING_PYTHON="python0"
    )
    assert_refused(done, "no Python 3.10 3.11 3.12 3.13", "for the environment of gpt2", "TRAINING_PYTHON=")
    assert not (tmp_path / "gpt2").exists()


@pytest.mark.parametrize("name", NAMES)
def test_every_requirement_is_pinned(name: str) -> None:
    lines = (TRAINING / name / "requirements.txt").read_text(encoding="utf-8").splitlines()
    requirements = [line for line in lines if line and not line.startswith("#")]
    assert requirements
    for line in requirements:
        assert re.match(r"[A-Za-z0-9_.\[\]-]+==\d+(\.\d+)*\S*( ;|$)", line), line


READERS = {
    "Saves": "run/stopping.py",
    "Steps": "run/steps.py",
    "validates_after": "run/settings.py",
    "find_source": "source.py",
    "resumed_settings": "resuming.py",
}
"""Modules of trainkit that read settings, by the name that a workload gives its settings to."""


def code_of(name: str) -> str:
    """Return the text of a workload's files, and of the modules of trainkit that read settings for it."""
    folder = TRAINING / name
    own = "\n".join(file.read_text(encoding="utf-8") for file in (*folder.glob("*.py"), *folder.glob("*.sh")))
    used = [TRAINING / "trainkit" / module for reader, module in READERS.items() if reader in own]
    return "\n".join([own, *(file.read_text(encoding="utf-8") for file in used)])


@pytest.mark.parametrize("name", NAMES)
def test_a_rehearsal_changes_settings_that_the_workload_reads_and_nothing_else(name: str) -> None:
    """Each name is one that is read, or says how many ranks and threads there are."""
    rehearsal = (TRAINING / name / "rehearsal.env").read_text(encoding="utf-8")
    names = set(re.findall(r"^export (\w+)=", rehearsal, flags=re.MULTILINE))
    assert {"DEVICE", "NPROC_PER_NODE"} <= names
    words = {word.upper() for word in re.findall(r"\w+", code_of(name))}
    assert names - words <= {"NPROC_PER_NODE", "OMP_NUM_THREADS"}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "nccl-tests"])
def test_a_workload_reads_each_setting_that_it_declares(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with workload_on_the_path(monkeypatch, name) as load:
        declared = {field.name for field in dataclasses.fields(load("settings").Settings)}
    assert declared - set(re.findall(r"\.(\w+)", code_of(name))) == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_has_all_that_the_contract_wants(name: str) -> None:
    files = {path.name for path in (TRAINING / name).iterdir()}
    assert {
        "README.md",
        "prepare.sh",
        "train.sh",
        "requirements.txt",
        "rehearsal.env",
        "figures.json",
    } <= files
    for figure in json.loads((TRAINING / name / "figures.json").read_text(encoding="utf-8")):
        assert set(figure) >= {"what", "family", "metric", "value", "unit", "source", "reproduced"}


def test_the_scripts_that_ship_import_none_of_ours() -> None:
    for file in TRAINING.rglob("*.py"):
        assert not re.search(r"(from|import) (training_cluster|rehearsal|ops|stacks)\b", file.read_text()), (
            file
        )
