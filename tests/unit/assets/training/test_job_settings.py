"""Settings that job.slurm records at each start, for reports."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

PARTITION = "export FAMILY='p4d'\nexport INSTANCE_TYPE='p4d.24xlarge'\nexport NCCL_FLOORS='2:1:41 4:1:38'\n"
SETTINGS = """\
@dataclass
class Settings:
    max_steps: int = 100
"""
SCRIPT = """\
set -euo pipefail
log() {{ printf '%s\\n' "$*" >&2; }}
tell() {{ :; }}
NNODES=2 training={training} workload=mine
source {training}/restarts.sh
source "$TRAINING_ETC/partitions/$SLURM_JOB_PARTITION.env"
start_step=0
note_start
note_end 0
"""


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """The environment of a job; its run folder is there."""
    training, partitions, run_dir = tmp_path / "training", tmp_path / "etc" / "partitions", tmp_path / "run"
    for folder in (training / "mine", partitions, run_dir):
        folder.mkdir(parents=True)
    shutil.copy(TRAINING / "restarts.sh", training)
    (partitions / "train.env").write_text(PARTITION)
    (training / "mine" / "settings.py").write_text(SETTINGS)
    (training / "mine" / "train.sh").write_text(
        'echo "${BATCH_SIZE:-1} $HF_TOKEN $WEIGHTS_URL $PATH $RUN_DIR"\n'
    )
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n-[1-2]", "SLURM_JOB_PARTITION": "train"}
    return slurm | {
        "PATH": os.environ["PATH"],
        "RUN_DIR": str(run_dir),
        "SPOT_NOTICE": str(run_dir / "spot-notice-7-0"),
        "TRAINING_ETC": str(tmp_path / "etc"),
    }


def start(job: dict[str, str], **settings: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(training=Path(job["RUN_DIR"]).with_name("training"))
    return subprocess.run(["bash", "-c", script], env=job | settings, capture_output=True, text=True)


def written(job: dict[str, str], restart: int = 0) -> dict[str, str]:
    lines = (Path(job["RUN_DIR"]) / f"settings-7-{restart}.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_partitions_settings_and_those_that_the_workload_reads_are_written_down(
    job: dict[str, str],
) -> None:
    done = start(job, BATCH_SIZE="8", MAX_STEPS="500", UNRELATED="x")
    assert done.returncode == 0, done.stderr
    assert written(job) == {
        "BATCH_SIZE": "8",
        "FAMILY": "p4d",
        "INSTANCE_TYPE": "p4d.24xlarge",
        "MAX_STEPS": "500",
        "NCCL_FLOORS": "2:1:41 4:1:38",
    }
    ends = (Path(job["RUN_DIR"]) / "ends").read_text().split()
    assert (ends[0], ends[1], *ends[3:]) == ("7", "0", "0", "ranks")


@pytest.mark.parametrize(
    ("given", "rehearsal", "precision"), [("", "0", "bf16"), ("fp16", "0", "fp16"), ("fp16", "1", "no")]
)
def test_a_given_precision_wins_over_the_family_s_and_that_of_a_rehearsal_over_both(
    job: dict[str, str], given: str, rehearsal: str, precision: str
) -> None:
    training = Path(job["RUN_DIR"]).with_name("training")
    with (Path(job["TRAINING_ETC"]) / "partitions" / "train.env").open("a") as facts:
        facts.write("export MIXED_PRECISION='bf16'\n")
    (training / "mine" / "rehearsal.env").write_text("export MIXED_PRECISION=no\n")
    function = f"sed -n '/^load_settings() {{/,/^}}/p' {TRAINING}/job.slurm"
    script = f'set -eu; training={training} workload=mine; eval "$({function})"; load_settings; env'
    env = job | {"MIXED_PRECISION": given, "TRAINING_REHEARSAL": rehearsal}
    said = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True).stdout
    assert f"MIXED_PRECISION={precision}" in said.splitlines()


def test_nothing_secret_is_written_down(job: dict[str, str]) -> None:
    start(job, HF_TOKEN="hf_1", WEIGHTS_URL="https://me:word@host/x", BATCH_SIZE="8")
    assert written(job).keys() == {"BATCH_SIZE", "FAMILY", "INSTANCE_TYPE", "NCCL_FLOORS"}


def test_each_start_has_settings_of_its_own_and_a_value_stays_on_its_line(job: dict[str, str]) -> None:
    start(job, BATCH_SIZE="8")
    start(job, BATCH_SIZE="a\nb=$(c)", SLURM_RESTART_COUNT="1")
    assert (written(job)["BATCH_SIZE"], written(job, 1)["BATCH_SIZE"]) == ("8", "a b=$(c)")


def test_a_job_goes_on_where_they_cannot_be_written(job: dict[str, str]) -> None:
    (Path(job["RUN_DIR"]) / "settings-7-0.env").mkdir()
    (Path(job["RUN_DIR"]) / "ends").mkdir()
    done = start(job)
    assert done.returncode == 0
    assert "the settings of this start could not be written down" in done.stderr
    assert "the end of this start could not be written down" in done.stderr


@pytest.mark.parametrize("workload", ["gpt2", "bert-trainium", "roberta", "gpt2-megatron", "titan"])
def test_what_shapes_a_training_is_among_the_settings_of_every_workload(
    workload: str, job: dict[str, str]
) -> None:
    mine = Path(job["RUN_DIR"]).with_name("training") / "mine"
    shutil.rmtree(mine)
    shutil.copytree(TRAINING / workload, mine)
    shutil.copytree(TRAINING / "trainkit", mine.with_name("trainkit"))
    start(job, MAX_STEPS="5", LEARNING_RATE="1e-3", CHECKPOINT_EVERY="2")
    assert {"MAX_STEPS", "LEARNING_RATE", "CHECKPOINT_EVERY"} <= written(job).keys()
