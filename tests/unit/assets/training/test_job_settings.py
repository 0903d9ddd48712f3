"""Settings that job.slurm records at each start, for reports."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import JOB, bash, printed
from training_cluster.paths import TRAINING

PARTITION = "export FAMILY='p4d'\nexport INSTANCE_TYPE='p4d.24xlarge'\nexport NCCL_FLOORS='2:1:41 4:1:38'\n"
OF_PARTITION = {"FAMILY": "p4d", "INSTANCE_TYPE": "p4d.24xlarge", "NCCL_FLOORS": "2:1:41 4:1:38"}
START = f"""\
{JOB}
NNODES=2 NODES=n-1,n-2 training="$1" workload=mine start_step=0
source {TRAINING}/job_settings.sh
job_script=4
source {TRAINING}/restarts.sh
source "$TRAINING_ETC/partitions/$SLURM_JOB_PARTITION.env"
note_start
note_end 0
"""
PRECISION = f"""\
training="$1" workload=mine
eval "$(sed -n '/^load_settings() {{/,/^}}/p' {TRAINING}/job.slurm)"
load_settings
printf '%s' "$MIXED_PRECISION"
"""


class Job:
    """A job's folders, and a workload of two settings."""

    def __init__(self, folder: Path) -> None:
        self.training, self.run_dir = folder / "training", folder / "run"
        self.workload, self.facts = self.training / "mine", folder / "etc" / "partitions" / "train.env"
        for each in (self.workload, self.facts.parent, self.run_dir):
            each.mkdir(parents=True)
        self.facts.write_text(PARTITION)
        (self.workload / "settings.py").write_text("class Settings:\n    max_steps: int = 100\n")
        words = 'echo "${BATCH_SIZE:-1} $HF_TOKEN $WEIGHTS_URL $PATH $RUN_DIR"\n'
        (self.workload / "train.sh").write_text(words)
        self.env = {
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "n-[1-2]",
            "SLURM_JOB_NUM_NODES": "3",
            "SLURM_JOB_PARTITION": "train",
            "SLURMD_NODENAME": "n-1",
        } | {"RUN_DIR": str(self.run_dir), "TRAINING_ETC": str(folder / "etc")}

    def start(self, first: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        return bash(START.replace("note_start", f"{first}note_start"), self.training, **(self.env | settings))

    def written(self, restart: int = 0) -> dict[str, str]:
        lines = (self.run_dir / f"settings-7-{restart}.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_settings_that_shape_a_start_are_written(job: Job) -> None:
    """But for secrets, in the name or the value."""
    done = job.start(
        BATCH_SIZE="8", MAX_STEPS="500", UNRELATED="x", HF_TOKEN="hf_1", WEIGHTS_URL="s://a:b@c/d"
    )
    assert done.returncode == 0, done.stderr
    assert job.written() == OF_PARTITION | {"BATCH_SIZE": "8", "MAX_STEPS": "500"}
    starts, ends = ((job.run_dir / name).read_text().split() for name in ("starts", "ends"))
    assert (starts[3:7], int(starts[7]) < 9) == (["n-1,n-2", "7", "0", "3"], True), "held, and for how long"
    assert (ends[0], ends[1], *ends[3:]) == ("7", "0", "0", "ranks")
    job.start("START_NUMBER=1\n", BATCH_SIZE="a\nb=$(c)", SLURM_JOB_START_TIME=str(int(time.time()) - 600))
    assert 600 <= int((job.run_dir / "starts").read_text().split()[-1]) < 660
    assert job.written(1)["BATCH_SIZE"] == "a b=$(c)", "each start has settings of its own"


def test_a_rehearsals_precision_wins_over_a_given_one(job: Job) -> None:
    with job.facts.open("a") as facts:
        facts.write("export MIXED_PRECISION='bf16'\n")
    (job.workload / "rehearsal.env").write_text("export MIXED_PRECISION=no\n")
    for given, rehearsal, precision in (("", "0", "bf16"), ("fp16", "0", "fp16"), ("fp16", "1", "no")):
        env = job.env | {"MIXED_PRECISION": given, "TRAINING_REHEARSAL": rehearsal}
        assert printed(PRECISION, job.training, **env) == precision


def test_a_job_goes_on_without_its_records(job: Job) -> None:
    (job.run_dir / "settings-7-0.env").mkdir()
    (job.run_dir / "ends").mkdir()
    done = job.start()
    assert done.returncode == 0
    assert "the settings of this start could not be written down" in done.stderr
    assert "the end of this start could not be written down" in done.stderr


def test_every_workloads_schedule_is_recorded(job: Job) -> None:
    schedule = {"MAX_STEPS": "5", "LEARNING_RATE": "1e-3", "CHECKPOINT_EVERY": "2"}
    shutil.copytree(TRAINING / "trainkit", job.training / "trainkit")
    for train in TRAINING.glob("*/train.py"):
        shutil.rmtree(job.workload)
        shutil.copytree(train.parent, job.workload)
        job.start(**schedule)
        assert job.written().items() >= schedule.items(), train
