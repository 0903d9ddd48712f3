"""restarts.sh: what a job does when its training has ended, with Slurm's programs in functions."""

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
training=/fsx/training workload=tiny run=mine NNODES=2 MAX_RESTARTS=${{MAX_RESTARTS:-3}} SLURM_JOB_ID=7
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

    def note(self, *starts: tuple[int, str]) -> None:
        """Write earlier starts: the step at which each began, and who ended it, if job.slurm saw its end."""
        for count, (step, by) in enumerate(starts):
            self.add("starts", f"{count} {step} 2026-11-22T03:00:00Z n[1-2] 7")
            if by:
                self.add("ends", f"7 {count} 2026-11-22T03:10:00Z 1 {by}")

    def add(self, name: str, line: str) -> None:
        """Add a line to a file of the run."""
        with (self.run_dir / name).open("a") as file:
            file.write(f"{line}\n")

    def run(self, line: str, **settings: str) -> tuple[int, str]:
        """Return the exit code and the output of a line of job.slurm."""
        ended = subprocess.run(
            ["bash", "-c", f"{JOB}start_step=4\n{line}"],
            env={
                "PATH": "/usr/bin:/bin",
                "RUN_DIR": str(self.run_dir),
                "CHECKPOINT_DIR": str(self.checkpoints),
                "SPOT_NOTICE": str(self.notice),
                **settings,
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
    assert f"{NOTICE}, and the training could not save; continues from step 4, interruption 1 of 10" in said
    assert (code, "scontrol requeue 7" in said) == (143, True)


COUNTS = "check_restart; log $failures $interruptions"


@pytest.mark.parametrize(
    ("starts", "counts"),
    [
        ([(4, "ranks"), (4, "ranks")], "2 0"),
        ([(4, ""), (4, "slurm"), (4, "ranks"), (4, "")], "1 3"),
        ([(2, "ranks"), (3, "ranks")], "0 0"),
        ([(0, "ranks")] * 9 + [(4, "ranks")], "1 0"),
        ([(8, "ranks"), (4, "ranks")], "2 0"),
    ],
    ids=["ranks", "Slurm", "checkpoint since", "checkpoint between", "damaged checkpoint"],
)
def test_starts_since_the_newest_checkpoint_count(
    job: Job, starts: list[tuple[int, str]], counts: str
) -> None:
    job.note(*starts)
    job.add("starts", "0 4 2026-11-22T03:00:00Z n[1-2] 6\n9 \0 torn")
    assert job.run(COUNTS) == (0, f"{counts}\n")


@pytest.mark.parametrize(
    ("by", "count", "allowed", "why"),
    [
        ("ranks", "restart", 3, "MAX_RESTARTS is 3, and 4 starts failed without a checkpoint after step 4"),
        ("slurm", "interruption", 10, "Slurm or EC2 ended 11 starts before a checkpoint after step 4"),
    ],
)
def test_starts_without_a_checkpoint_have_a_limit(
    job: Job, by: str, count: str, allowed: int, why: str
) -> None:
    job.note(*[(4, by)] * (allowed - 1))
    again = f"check_restart; restart_or_end 1 'n2 failed' {by}"
    code, output = job.run(again)
    assert f"n2 failed; continues from step 4, {count} {allowed}" in output
    assert (code, "scontrol requeue 7" in output) == (1, True)
    job.note((4, by))
    code, output = job.run(again)
    assert f"n2 failed; not started again, since {why}\n" in output
    assert (code, "scontrol" in output) == (1, False)
    (job.checkpoints / "latest_step").write_text("9\n")
    output = job.run(f"restart_or_end 1 'n2 failed' {by}")[1]
    assert "n2 failed; continues from step 9; queued again\n" in output


def test_max_restarts_0_ends_a_job_after_any_start(job: Job) -> None:
    job.note((2, ""))
    code, output = job.run("check_restart", MAX_RESTARTS="0")
    assert (code, "not started again, since MAX_RESTARTS is 0" in output) == (1, True)


@pytest.mark.parametrize(
    ("files", "line", "by"),
    [
        ((), "note_end 1", "ranks"),
        (("failed",), "note_end 143", "ranks"),
        (("failed", "spot-notice-7-0"), "note_end 1", "slurm"),
        ((), "told=yes; note_end 1", "slurm"),
        ((), "note_end 143", "slurm"),
    ],
    ids=["dead rank", "dead rank, others asked", "notice", "scancel or lost node", "time limit"],
)
def test_an_end_names_who_ended_it(job: Job, files: tuple[str, ...], line: str, by: str) -> None:
    for name in files:
        (job.run_dir / name).touch()
    job.run(line)
    assert (job.run_dir / "ends").read_text().split()[-1] == by


def test_a_node_without_steps_counts_no_start(job: Job) -> None:
    code, output = job.run("srun() { return 1; }; reach_nodes; note_start")
    assert output.endswith("not every node of the job took a step; queued again\nscontrol requeue 7\n")
    assert (code, (job.run_dir / "starts").exists()) == (1, False)
    code, output = job.run("srun() { return 1; }; reach_nodes", SLURM_RESTART_COUNT="10")
    assert (code, "not started again, since no training has begun in 10 restarts" in output) == (1, True)


@pytest.mark.parametrize(("array", "name"), [("7", "7_3"), ("5", "7"), ("", "7")])
def test_the_last_array_task_has_its_own_name(job: Job, array: str, name: str) -> None:
    """A job that a task of another array submitted inherits the variables of that array."""
    output = job.run("end_of_training 1", SLURM_ARRAY_JOB_ID=array, SLURM_ARRAY_TASK_ID="3")[1]
    assert f"\nscontrol requeue {name}\n" in output


def test_a_time_limit_without_checkpoint_ends_the_job(job: Job) -> None:
    limit = "squeue() { echo RUNNING 1:59; }; end_of_training 143"
    code, output = job.run(limit, REQUEUE_AT_TIME_LIMIT="1")
    assert "not started again, since no checkpoint was written in that time, after step 4" in output
    assert (code, "scontrol" in output) == (1, False)
    (job.checkpoints / "latest_step").write_text("9\n")
    output = job.run(limit, REQUEUE_AT_TIME_LIMIT="1")[1]
    assert "continues from step 9; queued again\nscontrol requeue 7\n" in output


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
    modules = set(re.findall(r'run_module.py" (trainkit[\w.]*)', text))
    assert "trainkit.run.report" in modules
    assert all((TRAINING / f"{name.replace('.', '/')}.py").is_file() for name in modules), modules
