"""Cases of `trainctl prove` on a local Slurm, with the tests' own trainer and a wrong one."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.problems import RehearsalError
from rehearsal.prove import CASES, WHOLE, mount_disk
from tests.slow.assets.training.tiny import tiny_on_slurm
from tests.slow.assets.training.training import Training

pytestmark = pytest.mark.slow

MOST_TELLING = ("truncate", "disk", "node")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("tiny")
    disk = folder / "fsx" / "checkpoints" / "tiny" / "disk"
    with contextlib.suppress(RehearsalError):
        mount_disk(disk)
    with tiny_on_slurm(folder, MAX_STEPS="12", STEP_S="0.3") as training:
        yield training
    if disk.is_mount():
        subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture(scope="module")
def whole(training: Training) -> None:
    """Make the run that is left alone."""
    assert not training.proof().run(WHOLE).problem


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in MOST_TELLING else pytest.mark.nightly) for case in CASES]
)
def test_a_trainer_that_resumes_passes(training: Training, whole: None, case: str) -> None:
    if case == "disk" and not training.checkpoints(case).is_mount():
        pytest.skip("this machine refuses to mount a disk")
    row = training.proof().run(case)
    assert (row.problem, row.losses) == ("", "equal")
    if case == "disk":
        log = sorted(training.slurm.layout.jobs.glob("train-*.log"))[-1].read_text()
        assert f"could not be written into {training.checkpoints(case)}, which has 0.0 GB free" in log


def forget(training: Training, case: str) -> None:
    for folder in (training.run_dir(case), training.checkpoints(case)):
        shutil.rmtree(folder, ignore_errors=True)


def test_a_wrong_trainer_or_disturbance_fails(training: Training, whole: None) -> None:
    forget(training, "stop")
    row = training.proof(CHECKPOINT_EVERY="100").run("stop")
    assert "was COMPLETED before something could be done" in row.problem
    trainer: Path = training.shared / "training" / "tiny" / "trainer.py"
    trainer.write_text(trainer.read_text().replace("= checkpoints.resume_from(run)", "= None"))
    forget(training, "kill")
    row = training.proof().run("kill")
    assert row.problem.startswith("It went on with step 1, not after its checkpoint of step ")
