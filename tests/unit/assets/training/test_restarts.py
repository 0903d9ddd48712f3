"""restarts.sh: what a job does when its training has ended, with Slurm's programs in functions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

JOB = f"""\
set -euo pipefail
log() {{ printf '%s\\n' "$*"; }}
die() {{ log "$1"; exit 1; }}
tell() {{ :; }}
report() {{ :; }}
find_python() {{ command -v python3; }}
scontrol() {{ log "scontrol $*"; }}
training=/fsx/training workload=tiny run=mine NNODES=2 MAX_RESTARTS=3 SLURM_JOB_ID=7
source "{TRAINING}/restarts.sh"
"""
NOTICE = "EC2 takes a node (n2: terminate)"


class Job:
    """Job 7 in its first start, which began at step 4."""

    def __init__(self, folder: Path) -> None:
        self.run_dir, self.checkpoints = folder / "run", folder / "checkpoints"
        for each in (self.run_dir, self.checkpoints):
            each.mkdir()
        (self.checkpoints / "latest_step").write_text("4\n")
        (self.checkpoints / "trainers-own").touch()
        self.notice = self.run_dir / "spot-notice-7-0"

    def run(self, line: str) -> tuple[int, str]:
        """Return the exit code and the output of a line of job.slurm."""
        ended = subprocess.run(
            ["bash", "-c", f"{JOB}start_step=4\n{line}"],
            env={
                "PATH": "/usr/bin:/bin",
                "RUN_DIR": str(self.run_dir),
                "CHECKPOINT_DIR": str(self.checkpoints),
                "SPOT_NOTICE": str(self.notice),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert not ended.stderr
        return ended.returncode, ended.stdout


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_spot_notice_before_the_first_step_and_the_job_is_queued_again(job: Job) -> None:
    """Ranks that import torch do not yet save at SIGTERM: neither the data nor the code is at fault."""
    job.notice.write_text("n2: terminate\n")
    code, said = job.run("end_of_training 143")
    assert f"{NOTICE}, and the training could not save; goes on from step 4, restart 1 of 3" in said
    assert (code, "scontrol requeue 7" in said) == (143, True)
    (job.run_dir / "starts").write_text("0 4 2026-11-22T03:00:00Z n[1-2] 7\n")
    assert job.run("check_restart && log restarts $restarts") == (0, "restarts 1\n")
    job.notice.unlink()
    code, said = job.run("check_restart")
    assert (code, "no checkpoint was written since the last start, at step 4" in said) == (1, True)


def test_a_run_that_ec2_always_interrupts_is_not_started_for_ever(job: Job) -> None:
    job.notice.write_text("n2: terminate\n")
    code, said = job.run("restarts=3; end_of_training 143")
    assert (code, "not started again, since MAX_RESTARTS is 3" in said) == (143, True)


@pytest.mark.parametrize("outcome", ["", "stopped 9"])
def test_a_job_that_is_cancelled_after_a_spot_notice_is_not_queued_again(job: Job, outcome: str) -> None:
    """Slurm takes back a cancelled job that still saves (_job_requeue_op)."""
    job.notice.write_text("n2: terminate\n")
    (job.run_dir / "outcome").write_text(f"{outcome}\n")
    (job.checkpoints / "latest_step").write_text("9\n")
    code, said = job.run("told=yes; end_of_training 0")
    assert "as Slurm asked (time limit, scancel or requeue)" in said
    assert (code, "scontrol" in said) == (1, False)


def test_a_job_that_is_cancelled_while_its_user_is_notified_is_not_queued_again(job: Job) -> None:
    (job.checkpoints / "latest_step").write_text("9\n")
    assert "scontrol requeue 7" in job.run("end_of_training 1")[1]
    code, said = job.run("tell() { told=yes; }; end_of_training 1")
    assert (code, "scontrol" in said) == (1, False)


def test_ranks_that_a_time_limit_ends_before_their_first_step_have_not_failed(job: Job) -> None:
    """Its signal is for the ranks alone, so this script knows of it by their exit code."""
    code, said = job.run("end_of_training 143")
    assert "ended without saving since the checkpoint of step 4, as Slurm asked" in said
    assert (code, "failed" in said) == (1, False)


def test_modules_that_scripts_run_exist() -> None:
    """A report that fails is one line in the log of a job that ended well, and easily missed."""
    scripts = [TRAINING / "job.slurm", *TRAINING.rglob("*.sh")]
    text = "\n".join(file.read_text("utf-8") for file in scripts)
    modules = set(re.findall(r"-m (trainkit[\w.]*)", text))
    assert "trainkit.run.report" in modules
    assert all((TRAINING / f"{name.replace('.', '/')}.py").is_file() for name in modules), modules
