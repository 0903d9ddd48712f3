"""A real Slurm on this machine, and the gpt2 workload on two of its nodes."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rehearsal.local_slurm import LocalSlurm, NodeShape, parse_partitions

pytestmark = pytest.mark.slow

TRAINING = Path(__file__).parents[2] / "assets" / "training"
RESOURCE = {"Name": "p4d", "InstanceType": "p4d.24xlarge", "MinCount": 0, "MaxCount": 2}
QUEUE = {"Name": "train", "ComputeResources": [RESOURCE]}
SHAPES = {"p4d.24xlarge": NodeShape(vcpus=96, memory_mib=1_179_648)}
NODES = ("train-dy-p4d-1", "train-dy-p4d-2")
# What the bootstrap installs for this family; the rehearsal's own settings then say CPU.
FAMILY = """\
export FAMILY=p4d
export RANKS_PER_NODE=8
export ACCELERATOR_KIND=gpu
export MIXED_PRECISION=bf16
"""
STEPS, RESUMED_AT = 12, 6


def local_slurm(root: Path, *, mark: str, suspend_time_s: int = 20) -> LocalSlurm:
    config = {"Scheduling": {"SlurmQueues": [QUEUE]}}
    partitions = parse_partitions(cluster_config=config, shapes=SHAPES)
    marker = ("LOCAL_SLURM_TEST", f"{mark}-{os.getpid()}")
    return LocalSlurm(root=root, partitions=partitions, marker=marker, suspend_time_s=suspend_time_s)


def marked(mark: str) -> list[psutil.Process]:
    """Every process that carries the test's mark, found without the code under test."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("LOCAL_SLURM_TEST") == f"{mark}-{os.getpid()}":
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def wait_for_states(slurm: LocalSlurm, wanted: str, *, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while (states := slurm.node_states()) != dict.fromkeys(NODES, wanted):
        assert time.monotonic() < deadline, states
        time.sleep(0.5)


def test_nodes_start_for_a_job_power_down_when_idle_and_nothing_is_left(tmp_path: Path) -> None:
    with local_slurm(tmp_path, mark="power", suspend_time_s=3) as slurm:
        assert slurm.node_states() == dict.fromkeys(NODES, "idle~")
        lines: list[str] = []
        script = "srun --mpi=none bash -c 'echo $SLURMD_NODENAME'"
        job = slurm.wait(slurm.submit(["--nodes=2", "--wrap", script]), timeout_s=60, on_line=lines.append)
        assert job.is_completed
        assert sorted(lines) == list(NODES)
        assert {p.name() for p in marked("power")} >= {"munged", "slurmctld", "slurmd"}
        wait_for_states(slurm, "idle~", timeout_s=60)
        assert "slurmd" not in {p.name() for p in marked("power")}
    assert marked("power") == []


def test_stop_ends_a_job_that_ignores_sigterm_and_what_it_left_behind(tmp_path: Path) -> None:
    slurm = local_slurm(tmp_path, mark="stubborn")
    slurm.start()
    script = "trap '' TERM; echo up; env -i setsid sleep 600 & sleep 600"
    job_id = slurm.submit(["--nodes=2", "--wrap", f'srun --mpi=none bash -c "{script}"'])
    output = slurm.job(job_id).output
    deadline = time.monotonic() + 60
    while not output.is_file() or output.read_text().count("up") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    sleeping = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "600"]]
    assert len(sleeping) >= 4
    slurm.stop()
    assert marked("stubborn") == []
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in sleeping)
    slurm.stop()


def test_a_job_that_fails_is_told_with_its_exit_code(tmp_path: Path) -> None:
    with local_slurm(tmp_path, mark="fail") as slurm:
        job = slurm.wait(slurm.submit(["--wrap", "exit 3"]), timeout_s=60)
    assert (job.state, job.exit_code) == ("FAILED", 3)


class Training:
    """A local Slurm with a shared folder, as job.slurm wants them."""

    def __init__(self, slurm: LocalSlurm, folder: Path) -> None:
        self.shared = folder / "fsx"
        self._slurm = slurm
        shutil.copytree(TRAINING, self.shared / "training")
        partitions = folder / "etc" / "partitions"
        partitions.mkdir(parents=True)
        (partitions / "train.env").write_text(FAMILY, encoding="utf-8")
        self._env = {
            "TRAINING_SHARED": str(self.shared),
            "TRAINING_ETC": str(folder / "etc"),
            "TRAINING_VENVS": os.environ.get("TRAINING_VENVS", str(self.shared / "venvs")),
            "TRAINING_REHEARSAL": "1",
            "MAX_STEPS": str(STEPS),
            "CHECKPOINT_EVERY": str(RESUMED_AT),
            "WARMUP_STEPS": "2",
            # Dropout draws random numbers: equal losses then show that these are restored too.
            "GPT2_DROPOUT": "0.1",
        }

    def submit(self, run: str, *, workload: str = "gpt2", **env: str) -> int:
        script = str(self.shared / "training" / "job.slurm")
        return self._slurm.submit(["--nodes=2", script, workload], env=self._env | {"RUN_NAME": run} | env)

    def wait(self, job_id: int, *, state: str) -> str:
        """Wait for the end; what the job printed."""
        lines: list[str] = []
        job = self._slurm.wait(job_id, timeout_s=600, on_line=lines.append)
        assert job.state == state, "\n".join(lines)
        return "\n".join(lines)

    def run(self, run: str, **env: str) -> str:
        """Run to the end; what the job printed."""
        return self.wait(self.submit(run, **env), state="COMPLETED")

    def end(self, job_id: int) -> None:
        """Have Slurm end a job."""
        self._slurm.cancel(job_id)
        self.wait(job_id, state="CANCELLED")

    def checkpoints(self, run: str) -> Path:
        return self.shared / "checkpoints" / "gpt2" / run

    def metrics(self, run: str) -> list[dict[str, Any]]:
        file = self.shared / "runs" / "gpt2" / run / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("gpt2")
    with local_slurm(folder / "slurm", mark="gpt2", suspend_time_s=120) as slurm:
        yield Training(slurm, folder)
    assert marked("gpt2") == []


@pytest.fixture(scope="module")
def whole_run(training: Training) -> list[dict[str, Any]]:
    """The metrics of a run that nothing interrupts."""
    training.run("whole")
    return training.metrics("whole")


def test_gpt2_trains_on_two_nodes_as_one_world_and_its_loss_falls(whole_run: list[dict[str, Any]]) -> None:
    assert [line["step"] for line in whole_run] == list(range(1, STEPS + 1))
    assert {line["world_size"] for line in whole_run} == {2}
    assert whole_run[-1]["loss"] < whole_run[0]["loss"] - 0.5


def test_gpt2_resumes_with_the_very_losses_of_an_uninterrupted_run(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    kept = f"step-{RESUMED_AT:06d}"
    shutil.copytree(training.checkpoints("whole") / kept, training.checkpoints("resumed") / kept)
    assert f"resuming from {training.checkpoints('resumed') / kept}" in training.run("resumed")
    resumed = training.metrics("resumed")
    assert [(line["step"], line["loss"]) for line in resumed] == [
        (line["step"], line["loss"]) for line in whole_run[RESUMED_AT:]
    ]
    assert [line["tokens"] for line in resumed] == [line["tokens"] for line in whole_run[RESUMED_AT:]]


def test_gpt2_saves_when_slurm_ends_it_and_goes_on_from_there(training: Training) -> None:
    endless = {"MAX_STEPS": "100000", "CHECKPOINT_EVERY": "100000"}
    job_id = training.submit("ended", **endless)
    deadline = time.monotonic() + 120
    while len(training.metrics("ended")) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    training.end(job_id)
    deadline = time.monotonic() + 60
    while not (saved := list(training.checkpoints("ended").glob("step-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    at = int(saved[0].name.removeprefix("step-"))
    assert f"resuming from {saved[0]}" in training.run("ended", MAX_STEPS=str(at + 2))
    assert [line["step"] for line in training.metrics("ended")] == list(range(1, at + 3))


def test_nodes_that_would_train_alone_are_refused_in_the_first_step(training: Training) -> None:
    alone = training.shared / "training" / "alone"
    shutil.copytree(TRAINING / "gpt2", alone)
    script = (alone / "train.sh").read_text(encoding="utf-8")
    launch = script[script.index("  --nnodes") : script.index('  "$here/train.py"')]
    (alone / "train.sh").write_text(script.replace(launch, "  --standalone \\\n"), encoding="utf-8")
    said = training.wait(training.submit("alone", workload="alone"), state="FAILED")
    assert "the world size is 1 and EXPECTED_WORLD_SIZE is 2, so nodes would train alone" in said
