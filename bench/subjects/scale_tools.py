"""Costs of trainctl and the head node's exporter with many nodes, jobs and ranks.

The commands of trainctl go through the rehearsal's stand-in for Systems Manager, which cuts their output as
AWS does, to Slurm's real programs.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

from bench.measuring.programs import Command
from bench.subjects.scale_slurm import BigSlurm, hosts
from ops.account.head_node import HeadNode
from ops.jobs.lookup import read_jobs, read_nodes
from ops.report.source import read_folder
from rehearsal.local_aws.head_node.agent import Agent
from rehearsal.local_aws.head_node.run_commands import run
from training_cluster.paths import ASSETS

RANKS_PER_NODE = 8
_OUT, _QUEUED = 20, 4
"""A node of 20 is out, each with a reason of its own; there is a waiting job for each 4 nodes."""
_ROWS = 2_000
_CHECKPOINTS = 3


@dataclass(frozen=True, kw_only=True)
class Tools:
    """Costs of one number of nodes outside of Slurm's daemons."""

    status_s: float
    """Time of the nodes' part of trainctl status."""
    status_characters: int
    """Characters of its answer, of which Systems Manager keeps 24,000."""
    status_is_cut: bool
    jobs_s: float
    """Time of trainctl jobs."""
    jobs_characters: int
    jobs_is_cut: bool
    exporter_cpu_s: float
    """CPU of one run of the head node's metrics, without slurmctld's."""
    exporter_bytes: int
    """Size of the text files that it writes."""
    report_s: float
    """Time of reading a run of all nodes, for trainctl report."""


class RunCommand:
    """Systems Manager, as far as HeadNode needs it: a command runs at once, on this machine."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.meta = SimpleNamespace(events=SimpleNamespace(register_first=lambda *_, **__: None))
        self.characters = 0
        self._environment, self._agent, self._answer = environment, Agent(), dict[str, Any]()

    def send_command(self, **asked: Any) -> dict[str, Any]:
        """Run a command to its end."""
        ended = run(asked["Parameters"]["commands"][0], self._environment, agent=self._agent)
        self.characters = len(ended.stdout)
        self._answer = {
            "Status": ended.status,
            "ResponseCode": ended.code,
            "StandardOutputContent": ended.stdout,
            "StandardErrorContent": ended.stderr,
        }
        return {"Command": {"CommandId": "1"}}

    def get_command_invocation(self, **_: Any) -> dict[str, Any]:
        """Return the outcome of the last command."""
        return self._answer


def measure_tools(slurm: BigSlurm, folder: Path) -> Tools:
    """Measure the commands on a cluster whose nodes are up; the text files remain in folder/textfiles."""
    count = len(slurm.node_names)
    _disturb(slurm, count)
    ssm = RunCommand(slurm.client_env())
    head_node = HeadNode(cluster_name="bench", instance_id="i-1", ssm=ssm)
    began = time.perf_counter()
    partitions, out = read_nodes(head_node)
    status_s, status_characters = time.perf_counter() - began, ssm.characters
    began = time.perf_counter()
    jobs = read_jobs(head_node)
    jobs_s, jobs_characters = time.perf_counter() - began, ssm.characters
    exporter_cpu_s = _export(slurm, folder)
    run_dir = write_run(folder, nodes=count)
    began = time.perf_counter()
    read_folder(run_dir)
    return Tools(
        status_s=status_s,
        status_characters=status_characters,
        status_is_cut=len(out) < count // _OUT or sum(each.size for each in partitions) < count,
        jobs_s=jobs_s,
        jobs_characters=jobs_characters,
        jobs_is_cut=len(jobs.queue) < count // _QUEUED,
        exporter_cpu_s=exporter_cpu_s,
        exporter_bytes=sum(file.stat().st_size for file in (folder / "textfiles").glob("*.prom")),
        report_s=time.perf_counter() - began,
    )


def _disturb(slurm: BigSlurm, count: int) -> None:
    """Drain nodes for reasons of their own, and let jobs wait."""
    for i, node in enumerate(slurm.node_names[::_OUT][: count // _OUT]):
        reason = f"gpu lost: XID 79 on GPU {i % 8}, PCI:0000:{i % 256:02x}:1c"
        slurm.drain(node, reason)
    for i in range(count // _QUEUED):
        where = [f"--nodelist={hosts(1 + i, 4)}", "--hold", f"--job-name=titan-{i}", "--time=1-0"]
        slurm.submit([*where, "--wrap", "true"])


def _export(slurm: BigSlurm, folder: Path) -> float:
    """Run the head node's metrics once; return its CPU seconds."""
    prices = folder / "prices"
    prices.write_text("head - 0.68\ngpu p5 55.04\n", encoding="utf-8")
    (folder / "runs").mkdir()
    program = ASSETS / "bootstrap" / "metrics" / "head_node.py"
    command: Command = [
        sys.executable,
        "-B",
        program,
        "--no-cloudwatch",
        "--cluster",
        "bench",
        "--region",
        "here",
    ]
    command += ["--textfiles", folder / "textfiles", "--state", folder / "state", "--prices", prices]
    before = psutil.Process().cpu_times()
    subprocess.run(
        [*command, "--runs", folder / "runs", "--storage", folder],
        env=slurm.client_env() | {"TRAINING_ROOT": str(folder)},
        check=True,
    )
    after = psutil.Process().cpu_times()
    return after.children_user + after.children_system - (before.children_user + before.children_system)


def write_run(folder: Path, *, nodes: int) -> Path:
    """Write a run of so many nodes, with the files of its ranks; return its folder."""
    ranks = nodes * RANKS_PER_NODE
    run_dir, saved = folder / "shared" / "runs" / "titan" / "big", folder / "shared" / "checkpoints"
    for node in range(nodes):
        logs = run_dir / "logs" / "7-0" / f"{hosts(node, 1)}"
        logs.mkdir(parents=True)
    row = {"tokens_per_s": 1e7, "mfu": 0.4, "step_s": 9.0, "data_s": 0.1, "world_size": ranks}
    with (run_dir / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for step in range(1, _ROWS + 1):
            at = f"2026-03-02T{9 + step // 3600:02}:{step // 60 % 60:02}:{step % 60:02}+00:00"
            file.write(json.dumps({"step": step, "loss": 3.0, "time": at, **row}) + "\n")
    (run_dir / "starts").write_text(f"0 0 2026-03-02T09:00:00Z n-[1-{nodes}] 7 0 {nodes} 90\n")
    for step in range(1, _CHECKPOINTS + 1):
        checkpoint = saved / "titan" / "big" / f"step-{step * 500:06d}"
        checkpoint.mkdir(parents=True)
        names = [f"__{rank}_0.distcp" for rank in range(ranks)]
        for name in names:
            os.close(os.open(checkpoint / name, os.O_CREAT | os.O_WRONLY))
        label = {"step": step * 500, "run": str(run_dir), "files": dict.fromkeys(names, 491 * 2**20)}
        label["sums"] = dict.fromkeys(names, "0123abcd" * 8)
        (checkpoint / "checkpoint.json").write_text(json.dumps(label))
    return run_dir
