"""Seconds to the first step of gpt2 on two ranks: with sbatch on a local Slurm, and with plain torchrun."""

import datetime
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.measuring.environments import VENVS, workload_python
from bench.measuring.programs import BaselineError, Command, limited, start
from bench.subjects.workloads import free_port
from rehearsal.local_slurm import LocalSlurm, NodeShape, parse_partitions
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.paths import TRAINING
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

WORKLOAD = "gpt2"
FAMILY = "m6i"
NODES = 2
_SUSPEND_TIME_S = 600
_TIMEOUT_S = 180
_RUN = {"MAX_STEPS": "2", "EVAL_SEQUENCES": "0", "CHECKPOINT_EVERY": "1000"}
# Sources the workload's own settings, as job.slurm does.
_WITH_SETTINGS = 'set -euo pipefail; source "$1"; source "$2"; shift 2; exec "$@"'


class FirstStep:
    """A local Slurm with running nodes, the workload's data, and two ways to start a run."""

    def __init__(self, slurm: LocalSlurm, folder: Path) -> None:
        self._slurm, self._variables = slurm, make_shared(folder)
        self._shared = Path(self._variables["TRAINING_SHARED"])
        self._training = self._shared / "training"
        self._partition = Path(self._variables["TRAINING_ETC"]) / "partitions" / "train.env"
        self._runs = 0
        # Makes the environment and the data, and powers the nodes up.
        self.by_sbatch()
        self._first = self._run_dir()

    def by_sbatch(self) -> float:
        """Return the seconds from sbatch to the first step, with job.slurm's checks and no preparation."""
        self._runs += 1
        variables = {**self._variables, "RUN_NAME": str(self._runs), **_RUN}
        script = str(self._training / "job.slurm")
        began = time.time()
        job_id = self._slurm.submit([f"--nodes={NODES}", script, WORKLOAD], env=variables)
        lines: list[str] = []
        job = self._slurm.wait(job_id, timeout_s=_TIMEOUT_S, on_line=lines.append)
        if not job.is_completed:
            raise BaselineError(f"job {job_id} ended as {job.state}:\n" + "\n".join(lines[-20:]))
        return self._first_row() - began

    def by_torchrun(self) -> float:
        """Return the seconds from the start of torchrun, one per rank, with the same trainer and settings."""
        self._runs += 1
        self._run_dir().mkdir(parents=True)
        shutil.copyfile(self._first / "data.json", self._run_dir() / "data.json")
        port = free_port()
        began = time.time()
        with ExitStack() as running:
            ranks = [self._torchrun(rank, port) for rank in range(NODES)]
            for rank in ranks:
                running.enter_context(limited(rank, _TIMEOUT_S))
            said = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            raise BaselineError("torchrun failed or did not finish:\n" + "\n".join(said))
        return self._first_row() - began

    def _torchrun(self, rank: int, port: int) -> subprocess.Popen[str]:
        folder = self._training / WORKLOAD
        checkpoints = self._shared / "checkpoints" / WORKLOAD / str(self._runs)
        checkpoints.mkdir(parents=True, exist_ok=True)
        command: Command = ["bash", "-c", _WITH_SETTINGS, "bash", self._partition, folder / "rehearsal.env"]
        python = workload_python(WORKLOAD)
        command += [python, "-B", python.with_name("torchrun")]
        command += ["--nnodes", str(NODES), "--node-rank", str(rank), "--nproc-per-node", "1"]
        command += ["--master-addr", "127.0.0.1", "--master-port", str(port), folder / "train.py"]
        environment = {
            **os.environ,
            **_RUN,
            "PYTHONPATH": str(self._training),
            "GLOO_SOCKET_IFNAME": "lo",
            "TRAINING_REHEARSAL": "1",
            "NNODES": str(NODES),
            "EXPECTED_WORLD_SIZE": str(NODES),
            "DATA_DIR": str(self._shared / "datasets" / WORKLOAD),
            "RUN_DIR": str(self._run_dir()),
            "CHECKPOINT_DIR": str(checkpoints),
        }
        return start(command, cwd=Path.cwd(), environment=environment)

    def _run_dir(self) -> Path:
        return self._shared / "runs" / WORKLOAD / str(self._runs)

    def _first_row(self) -> float:
        """Return the time at which the first step ended, in seconds since 1970."""
        with (self._run_dir() / "metrics.jsonl").open(encoding="utf-8") as rows:
            return time_of(rows.readline())


def time_of(row: str) -> float:
    """Return the time of a row of metrics.jsonl, in seconds since 1970."""
    return datetime.datetime.fromisoformat(json.loads(row)["time"]).timestamp()


def make_shared(folder: Path) -> dict[str, str]:
    """Make a shared folder with the training scripts; return the variables of its jobs."""
    shared, partitions = folder / "fsx", folder / "etc" / "partitions"
    shutil.copytree(TRAINING, shared / "training")
    partitions.mkdir(parents=True)
    settings = read_settings({"family": FAMILY})
    rendered = render_job_environments(config_before_deploy(settings), settings)
    (partitions / "train.env").write_text(rendered[settings.family_facts.queue], encoding="utf-8")
    return {
        "TRAINING_SHARED": str(shared),
        "TRAINING_ETC": str(partitions.parent),
        "TRAINING_VENVS": str(VENVS),
        "TRAINING_REHEARSAL": "1",
    }


@contextmanager
def ready(folder: Path) -> Iterator[dict[str, Callable[[], float]]]:
    """Yield both ways to start a run, by their names on the page."""
    with local_slurm(folder / "slurm", nodes=NODES) as slurm:
        both = FirstStep(slurm, folder)
        yield {"sbatch": both.by_sbatch, "bare torchrun": both.by_torchrun}


@contextmanager
def local_slurm(root: Path, *, nodes: int) -> Iterator[LocalSlurm]:
    """Run a local Slurm with a partition `train` of dynamic nodes."""
    workload_python(WORKLOAD)
    resource = {"Name": FAMILY, "InstanceType": "m6i.32xlarge", "MinCount": 0, "MaxCount": nodes}
    queue = {"Name": "train", "ComputeResources": [resource]}
    partitions = parse_partitions(
        cluster_config={"Scheduling": {"SlurmQueues": [queue]}},
        shapes={"m6i.32xlarge": NodeShape(vcpus=128, memory_mib=524_288)},
    )
    with LocalSlurm(
        root=root,
        partitions=partitions,
        marker=("LOCAL_SLURM_BENCH", str(os.getpid())),
        suspend_time_s=_SUSPEND_TIME_S,
    ) as slurm:
        yield slurm
