"""A real Slurm on this machine with a shared folder, as job.slurm wants them: what tests of jobs share."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest

from rehearsal.local_slurm import LocalSlurm, NodeShape, SlurmError, parse_partitions
from rehearsal.prove import Proof
from training_cluster.cluster.config import JOB_SETTINGS
from training_cluster.paths import TRAINING

RESOURCE = {"Name": "p4d", "InstanceType": "p4d.24xlarge", "MinCount": 0, "MaxCount": 2}
QUEUE = {"Name": "train", "ComputeResources": [RESOURCE]}
SHAPES = {"p4d.24xlarge": NodeShape(vcpus=96, memory_mib=1_179_648)}
NODES = ("train-dy-p4d-1", "train-dy-p4d-2")
PROGRAMS = Path(__file__).parent / "programs"
"""Folder of the programs that run in a workload's environment."""
# What the bootstrap installs for this family; the rehearsal's own settings then say CPU.
FAMILY = """\
export FAMILY=p4d
export RANKS_PER_NODE=8
export ACCELERATOR_KIND=gpu
export MIXED_PRECISION=bf16
"""


def local_slurm(
    root: Path,
    *,
    mark: str,
    suspend_time_s: int = 20,
    second_user: str | None = None,
    private: Collection[Path] = (),
    service: Sequence[str] = (),
    nodes: int = 2,
    prolog: Path | None = None,
    settings: Sequence[Mapping[str, object]] = (JOB_SETTINGS,),
) -> LocalSlurm:
    """A Slurm of two nodes, or more, whose processes carry the test's mark."""
    queue = QUEUE | {"ComputeResources": [RESOURCE | {"MaxCount": nodes}]}
    config = {"Scheduling": {"SlurmQueues": [queue]}}
    partitions = parse_partitions(cluster_config=config, shapes=SHAPES)
    marker = ("LOCAL_SLURM_TEST", f"{mark}-{os.getpid()}")
    return LocalSlurm(
        root=root,
        partitions=partitions,
        marker=marker,
        suspend_time_s=suspend_time_s,
        second_user=second_user,
        private=private,
        service=service,
        prolog=prolog,
        max_node_processes=max(nodes, 8),
        settings=settings,
    )


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


def losses(rows: list[dict[str, Any]]) -> list[tuple[int, float, int]]:
    """Return the values that have to be equal, bit by bit; the time of a step is not among them."""
    return [(row["step"], row["loss"], row["tokens"]) for row in rows]


def wait_until(holds: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    """Wait for a condition; an AssertionError with `what` if it does not come true in time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"after {timeout_s} s: {what}"
        time.sleep(0.2)


def hooked(folder: Path, *others: Path) -> str:
    """Return a PYTHONPATH with which ranks note what they flush, as programs/flushes.py describes.

    Args:
        folder: an empty folder for the start-up hook of Python.
        others: more hooks, of which Python itself would load one alone.
    """
    hooks = [PROGRAMS / "flushes.py", *others]
    (folder / "sitecustomize.py").write_text("".join(f"exec(open({str(file)!r}).read())\n" for file in hooks))
    return ":".join(map(str, [folder, *(file.parent for file in others)]))


class Training:
    """A local Slurm with a shared folder, as job.slurm wants them.

    `workload` is what is submitted unless a test names another, `env` its settings.
    """

    def __init__(
        self, slurm: LocalSlurm, folder: Path, *, workload: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.shared = folder / "fsx"
        self.slurm = slurm
        self.workload = workload
        self.settings = folder / "etc" / "partitions" / "train.env"
        shutil.copytree(TRAINING, self.shared / "training")
        self.settings.parent.mkdir(parents=True)
        self.settings.write_text(FAMILY, encoding="utf-8")
        self._env = {
            "TRAINING_SHARED": str(self.shared),
            "TRAINING_ETC": str(folder / "etc"),
            "TRAINING_VENVS": os.environ.get("TRAINING_VENVS", str(self.shared / "venvs")),
            "TRAINING_REHEARSAL": "1",
            **(env or {}),
        }

    @property
    def python(self) -> Path:
        """Interpreter of the workload's environment on CPUs, which its first job makes."""
        variant = {"bert-trainium": "-cpu", "gpt2-megatron": "-local"}.get(self.workload, "")
        return Path(self._env["TRAINING_VENVS"]) / f"{self.workload}{variant}" / "bin" / "python"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a head node whose jobs are those of this Slurm."""
        return self.slurm.client_env() | self._env

    def submit(
        self,
        run: str,
        *options: str,
        workload: str = "",
        arguments: Iterable[str] = (),
        user: str = "",
        **env: str,
    ) -> int:
        """`sbatch --nodes=2 <options> job.slurm <workload> <arguments>`, as `user`; the job's id."""
        script = str(self.shared / "training" / "job.slurm")
        argv = ["--nodes=2", *options, script, workload or self.workload, *arguments]
        return self.slurm.submit(argv, env=self._env | {"RUN_NAME": run} | env, user=user)

    def wait(self, job_id: int, *, state: str, timeout_s: float = 600) -> str:
        """Wait for the end; what the job printed."""
        lines: list[str] = []
        with self.ended_if_late(job_id):
            job = self.slurm.wait(job_id, timeout_s=timeout_s, on_line=lines.append)
        assert job.state == state, "\n".join(lines)
        return "\n".join(lines)

    @contextmanager
    def ended_if_late(self, job_id: int) -> Iterator[None]:
        """End a job for which the block waits in vain, and say its last lines.

        It would keep the nodes from the module's other tests. Its processes are killed, since those that hang
        have KillWait after scancel.
        """
        try:
            yield
        except (AssertionError, SlurmError) as error:
            with suppress(SlurmError):
                self.slurm.cancel(job_id)
            for process in marked(self.workload):
                with suppress(psutil.Error):
                    is_of_job = process.environ().get("SLURM_JOB_ID") == str(job_id)
                    if is_of_job and not process.name().startswith("slurmstepd"):
                        process.kill()
            last = "\n".join(self.output(job_id).splitlines()[-30:])
            raise AssertionError(f"{error}\nThe last lines of job {job_id}:\n{last}") from error

    def proof(self, **env: str) -> Proof:
        """Return the cases of `trainctl prove`, which compare with the run `whole`."""
        marker, variables = {"LOCAL_SLURM_TEST": f"{self.workload}-{os.getpid()}"}, self.environment | env
        return Proof(self.slurm, marker, self.shared, variables, self.workload, 2)

    def run(self, run: str, **env: str) -> str:
        """Run to the end; what the job printed."""
        return self.wait(self.submit(run, **env), state="COMPLETED")

    def end(self, job_id: int) -> str:
        """Have Slurm end a job; what it printed."""
        self.slurm.cancel(job_id)
        return self.wait(job_id, state="CANCELLED")

    def output(self, job_id: int) -> str:
        """Return the output of a job so far."""
        file = self.slurm.job(job_id).output
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def run_dir(self, run: str) -> Path:
        """Return the folder of a run."""
        return self.shared / "runs" / self.workload / run

    def checkpoints(self, run: str) -> Path:
        """Return the folder of a run's checkpoints."""
        return self.shared / "checkpoints" / self.workload / run

    def metrics(self, run: str) -> list[dict[str, Any]]:
        """The rows of the steps that a run has written so far."""
        return [row for row in self._rows(run) if "val_loss" not in row]

    def validations(self, run: str) -> list[dict[str, Any]]:
        """The rows of its validations."""
        return [row for row in self._rows(run) if "val_loss" in row]

    def flushed(self, run: str, rank: int) -> list[str]:
        """Return the files of checkpoints that a rank of a `hooked` run flushed, as STEP/NAME."""
        found = re.findall(
            r"/\.step-(\d+)\.[\d-]+\.partial/(.+)", (self.run_dir(run) / f"flushed-{rank}").read_text()
        )
        return [f"{int(step)}/{name}" for step, name in found]

    def _rows(self, run: str) -> list[dict[str, Any]]:
        file = self.run_dir(run) / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []

    def wait_for_step(self, job_id: int, run: str, step: int, *, timeout_s: float = 300) -> None:
        """Wait until a run has done so many steps; fails soon when the job has ended before."""
        looks = count(1)

        def is_there() -> bool:
            # Slurm is rarely asked, since a busy one may take seconds, in which the run goes on.
            return len(self.metrics(run)) >= step or (
                next(looks) % 25 == 0 and self.slurm.job(job_id).has_ended
            )

        with self.ended_if_late(job_id):
            wait_until(is_there, timeout_s=timeout_s, what=f"{run}: step {step}")
        assert len(self.metrics(run)) >= step, self.output(job_id)


def check_that_fewer_nodes_go_on(training: Training, checkpoint: str, **settings: str) -> str:
    """Continue `whole` from a checkpoint on two nodes and on one, without dropout: the losses are equal.

    Returns:
        Output of the job on one node.
    """
    said, rows = "", []
    for nodes in (2, 1):
        run = f"on-{nodes}"
        shutil.copytree(training.checkpoints("whole") / checkpoint, training.checkpoints(run) / checkpoint)
        said = training.wait(training.submit(run, f"--nodes={nodes}", **settings), state="COMPLETED")
        rows.append(training.metrics(run))
    assert [row["world_size"] for row in (rows[0][0], rows[1][0])] == [2, 1]
    assert [row["tokens"] for row in rows[0]] == [row["tokens"] for row in rows[1]]
    losses_of = [[row["loss"] for row in each] for each in rows]
    assert losses_of[0] == pytest.approx(losses_of[1], rel=1e-5)
    return said


def check_that_divergence_ends_a_run(training: Training, *, says: str = "the loss is ") -> None:
    """Have a learning rate destroy the weights: the run has to fail in the step that shows it.

    Both ranks say so, the step gets no checkpoint, and the newest of those before it is named.
    """
    job_id = training.submit("diverged", LEARNING_RATE="1e30", CHECKPOINT_EVERY="1")
    said = training.wait(job_id, state="FAILED")
    found = re.findall(rf"rank (\d): step (\d+): {says}", said)
    assert sorted(rank for rank, _ in found) == ["0", "1"], said
    (step,) = {int(step) for _, step in found}
    assert all(row["loss"] is not None for row in training.metrics("diverged") if row["step"] < step), said
    folder = training.checkpoints("diverged")
    assert f"The last checkpoint with finite values is {folder / f'step-{step - 1:06d}'}:" in said, said
    assert not (folder / f"step-{step:06d}").exists()
    assert (training.run_dir("diverged") / "outcome").read_text() == f"diverged {step}\n"
    assert len((training.run_dir("diverged") / "starts").read_text().splitlines()) == 1


def check_that_each_file_has_a_sum(training: Training, folder: Path) -> None:
    """Change a bit in each file of the newest checkpoint of `whole`: a start takes the one before."""
    saved = training.checkpoints("whole")
    before, newest = sorted(saved.glob("step-*"))[-2:]
    files = [file.relative_to(saved) for file in newest.rglob("*") if file.is_file()]
    assert len(files) > 2
    for file in files:
        copy = shutil.copytree(saved, folder / str(file).replace("/", "-"))
        content = bytearray((copy / file).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / file).write_bytes(content)
        module = [TRAINING / "run_module.py", "trainkit.run.checkpoints", copy]
        subprocess.run([sys.executable, "-I", "-B", *map(str, module)], check=True)
        assert int((copy / "latest_step").read_text()) == int(before.name.removeprefix("step-")), file


def check_whole_run(training: Training, *, steps: int, falls_by: float = 0.5) -> list[dict[str, Any]]:
    """Check that the run `whole` has trained two ranks to its end with a falling loss; return its rows."""
    rows = training.metrics("whole")
    assert [row["step"] for row in rows] == list(range(1, steps + 1))
    assert {row["world_size"] for row in rows} == {2}
    assert min(row["grad_norm"] for row in rows) > 0
    assert rows[-1]["loss"] < rows[0]["loss"] - falls_by
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"
    assert (training.checkpoints("whole") / "latest_step").read_text() == f"{steps}\n"
    return rows


def check_that_a_killed_run_resumes(training: Training, **env: str) -> str:
    """Kill a rank behind the first checkpoint: the run continues, with the losses of the run `whole`.

    Returns what the job of the run `kill` printed.
    """
    proof = training.proof(**env)
    row = proof.run("kill")
    assert (row.problem, row.losses) == ("", "equal")
    return training.output(proof.job_id)


def python_of(workload: str) -> Path:
    """Return the interpreter of a workload's environment on CPUs, made if need be."""
    venv = Path(os.environ["TRAINING_VENVS"]) / workload
    make = f"source ./environment.sh; make_environment $PWD/{workload} {venv}"
    rehearsal = os.environ | {"TRAINING_REHEARSAL": "1"}
    subprocess.run(["bash", "-euc", make], cwd=TRAINING, env=rehearsal, check=True)
    return venv / "bin" / "python"


def in_environment(workload: str, script: str, *arguments: str) -> str:
    """Run a script of programs/ in a workload's environment, made if need be; return its output."""
    done = subprocess.run(
        [python_of(workload), "-B", PROGRAMS / script, *arguments],
        # pip compiled the packages in the environment, not into make's folder.
        env=os.environ | {"PYTHONPATH": f"{TRAINING}:{TRAINING / workload}", "PYTHONPYCACHEPREFIX": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def training_on_slurm(
    folder: Path,
    *,
    workload: str,
    env: Mapping[str, str] | None = None,
    suspend_time_s: int = 120,
    nodes: int = 2,
) -> Iterator[Training]:
    """A local Slurm and a shared folder for one workload; afterwards no process of it is left."""
    with local_slurm(folder / "slurm", mark=workload, suspend_time_s=suspend_time_s, nodes=nodes) as slurm:
        yield Training(slurm, folder, workload=workload, env=env)
    assert marked(workload) == []
