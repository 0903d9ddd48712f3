"""The workloads as job.slurm starts them on one node: their own prepare.sh and train.sh, without Slurm."""

import json
import os
import re
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.measuring.environments import VENVS, workload_python
from bench.measuring.programs import Command, Watched, watch
from training_cluster.paths import TRAINING

TIMEOUT_S = 1200
"""Time limit of a preparation or a training, in seconds. On GPUs it compiles the model and tunes kernels."""
_LABEL = re.compile(r"^\d+: ")  # of a rank's output, by launch.sh
Settings = Mapping[str, object]
"""Settings of a workload, by their names in lower case."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One workload, with a shared folder of its own."""

    name: str
    shared: Path

    def __post_init__(self) -> None:
        # Makes the environment here, so that it is not part of the measured time.
        workload_python(self.name)

    @property
    def data(self) -> Path:
        """Folder of its data."""
        return self.shared / "datasets"

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return workload_python(self.name)

    def run_dir(self, run: str) -> Path:
        """Return the folder of a run's metrics."""
        return self.shared / "runs" / run

    def metrics(self, run: str) -> list[dict[str, Any]]:
        """Read the rows of the steps in a run's metrics.jsonl, without validations' rows."""
        text = (self.run_dir(run) / "metrics.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.splitlines()]
        return [row for row in rows if "val_loss" not in row]

    def prepare(self, run: str, settings: Settings) -> Watched:
        """Run the workload's prepare.sh."""
        return self._start("prepare.sh", self.environment(run, settings))

    def train(self, run: str, settings: Settings) -> Watched:
        """Run the workload's train.sh with one rank on this machine; lines without their labels."""
        watched = self._start("train.sh", self.environment(run, settings))
        return replace(watched, lines=[(at, _LABEL.sub("", line)) for at, line in watched.lines])

    def train_on_data(self, run: str, settings: Settings) -> Watched:
        """Train in a new run, with what the run `data` prepared; the checkpoints are removed."""
        self.run_dir(run).mkdir(parents=True)
        shutil.copyfile(self.run_dir("data") / "data.json", self.run_dir(run) / "data.json")
        watched = self.train(run, settings)
        # A checkpoint is written at the end, and is not compared.
        shutil.rmtree(self.shared / "checkpoints" / run)
        return watched

    def environment(self, run: str, settings: Settings) -> dict[str, str]:
        """Return the variables that job.slurm gives a node, and the user's."""
        checkpoints = self.shared / "checkpoints" / run
        for folder in (self.data, self.run_dir(run), checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        fixed = {
            "TRAINING_VENVS": VENVS,
            "DATA_DIR": self.data,
            "RUN_DIR": self.run_dir(run),
            "CHECKPOINT_DIR": checkpoints,
            "LAUNCHER": "torchrun",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": free_port(),
            "NNODES": 1,
            "SLURM_NODEID": 0,
            "NPROC_PER_NODE": 1,
            "EXPECTED_WORLD_SIZE": 1,
        }
        own = {name.upper(): value for name, value in settings.items()}
        return {**os.environ, **{name: str(value) for name, value in {**fixed, **own}.items()}}

    def _start(self, script: str, environment: dict[str, str]) -> Watched:
        command: Command = ["bash", TRAINING / self.name / script]
        return watch(command, cwd=self.shared, environment=environment, timeout_s=TIMEOUT_S)


def free_port() -> int:
    """Find a TCP port on which nothing listens now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
