"""Checks the settings of a job before a node starts, by the workload's own code on this machine.

A workload's settings.py declares a dataclass `Settings` and a function `read_settings(arguments)`, and needs
no package. The table `Settings` of its README declares what its preparation and its scripts read in addition.
A function `check_job(settings, nodes)` in settings.py refuses what cannot run on that many nodes of the
partition, and may return the run's checkpoints, as a dict with the fields of training_cluster.sizing.Saves.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ops.jobs.variables import variables_of_jobs, variables_of_readme
from ops.usage import UsageError
from training_cluster.cluster.job_environment import FACTS
from training_cluster.paths import TRAINING
from training_cluster.problems import did_you_mean, nearest

# Prefixes of variables of programs, which any job may set.
OF_PROGRAMS = (
    *("AWS_", "CUDA_", "CUBLAS_", "FI_", "GLOO_", "GOMP_", "HF_", "I_MPI_", "KMP_", "LD_", "MALLOC_", "MKL_"),
    *("MLFLOW_", "NCCL_", "NEURON_", "NVIDIA_", "NVTE_", "OFI_", "OMP_", "PIP_", "PYTHON", "PYTORCH_"),
    *("RAYON_", "SBATCH_", "SLURM_", "TMPDIR", "TOKENIZERS_", "TORCH", "TRITON_", "WANDB_", "XLA_"),
)
# What the partition's file and job.slurm set after the settings.
OF_JOBS = {
    *FACTS,
    *("MASTER_ADDR", "MASTER_PORT", "NNODES", "EXPECTED_WORLD_SIZE", "RUN_DIR", "DATA_DIR", "CHECKPOINT_DIR"),
    *("START_STEP", "KILL_WAIT_S", "TRAINING_BUCKET", "TRAINING_UPLOADS", "JOB_TOPIC"),
} - {"MIXED_PRECISION"}
_OF_SLURM = "SLURM_JOB_"
_READ = """
import dataclasses, json, sys
sys.path[:0] = json.loads(sys.argv[1])
import settings
print(json.dumps([each.name.upper() for each in dataclasses.fields(settings.Settings)]), flush=True)
sys.argv[:] = ["settings", *sys.argv[2:]]
read = settings.read_settings(json.loads(sys.stdin.read()))
if len(sys.argv) > 1:
    print(json.dumps(getattr(settings, sys.argv[1])(read, int(sys.argv[2]))))
"""
# A trainer of one kind of accelerator refuses the others before it reads a setting; GPUs take most settings.
_KINDS = ("gpu", "none", "neuron")
_LIMIT_S = 30.0


def check_job_settings(
    workload: str, settings: Mapping[str, str], arguments: Sequence[str], *, training: Path = TRAINING
) -> str:
    """Check names and values of a job's settings, if this machine has the workload's folder.

    Returns:
        A note if they could not be checked, else "".

    Args:
        settings: environment variables of the job.
        arguments: arguments of the workload.
        training: folder of the workloads.

    Raises:
        UsageError: no code of the workload reads such a variable, the job itself sets it, or the trainer
            would refuse a value.
    """
    folder = training / workload
    if not (folder / "train.sh").is_file():
        return f"The settings are not checked: {folder} is not on this machine." if settings else ""
    fields = _declared(folder)
    for name in settings:
        if name in OF_JOBS or name.startswith(_OF_SLURM):
            raise UsageError(
                f"--set {name}: the job itself sets it, from its nodes and its run, and would ignore yours.\n"
                "  allowed: NPROC_PER_NODE for the ranks of a node, RUN_NAME for the run's folders"
            )
    if fields is not None:
        _check_names(folder, settings, [*fields, *variables_of_readme(folder)], training)
    if refusal := _refusal_of_job(folder, settings):
        raise UsageError(f"job.slurm would refuse these settings: {refusal}")
    if fields and (refusal := _refusal(folder, settings, arguments)):
        raise UsageError(f"{workload} would refuse these settings: {refusal}\n  docs:    {folder}/README.md")
    if fields is None and settings:
        return f"The workload's settings are not checked: {folder}/settings.py does not load here."
    return ""


def _check_names(folder: Path, settings: Mapping[str, str], own: Sequence[str], training: Path) -> None:
    """Raise UsageError at the first setting that neither the workload nor job.slurm declares."""
    shared = [each.name for each in variables_of_jobs(training)]
    own = list(dict.fromkeys(name for name in own if name not in shared))
    for name, value in settings.items():
        if name in own or name in shared or name.startswith(OF_PROGRAMS):
            continue
        close = nearest(name.upper(), own) or nearest(name.upper(), shared)
        instead = f"--set {close}={value}, or " if close else ""
        question = did_you_mean(close, [close]) if close else ""
        passed = f"--env {name}={value}, if your own program reads it"
        if name == "PATH":  # `env PATH=... sbatch` does not find sbatch
            passed = f'export PATH="{value}:$PATH" in a train.sh of your own'
        raise UsageError(
            f"--set {name}: neither {folder.name} nor job.slurm reads such a variable.{question}\n"
            f"  allowed: {', '.join(own) or 'none of its own'}\n"
            f"  or, of every job: {', '.join(shared)}\n"
            f"  type:    {instead}{passed}\n"
            f"  docs:    {folder}/README.md"
        )


def workloads_with(function: str) -> list[str]:
    """Return the workloads on this machine whose settings.py has a function about jobs on their nodes."""
    return sorted(
        file.parent.name
        for file in TRAINING.glob("*/settings.py")
        if f"\ndef {function}(" in file.read_text(encoding="utf-8")
    )


def ask_workload(
    function: str,
    workload: str,
    settings: Mapping[str, str],
    arguments: Sequence[str] = (),
    *,
    nodes: int,
    facts: Mapping[str, str],
) -> str:
    """Return what a function of a workload's settings.py says of a job on the nodes that it asks for.

    Args:
        function: check_job or expect_job, which return JSON.
        settings: environment variables of the job.
        arguments: arguments of the workload.
        nodes: number of nodes of the job.
        facts: environment of the jobs of these nodes (cluster/job_environment.py).

    Raises:
        UsageError: the trainer would refuse to run on these nodes.
    """
    folder = TRAINING / workload
    done = _read(folder, {**facts, **settings}, arguments, (function, str(nodes)))
    if done and done.returncode and (lines := done.stderr.strip().splitlines()):
        where = f"{nodes} x {facts.get('INSTANCE_TYPE', 'these nodes')}"
        raise UsageError(
            f"{workload} would refuse to run on {where}: {lines[-1].partition(': ')[2]}\n"
            f"  docs:    {folder}/README.md"
        )
    return done.stdout.splitlines()[-1] if done else ""


def _declared(folder: Path) -> list[str] | None:
    """Return the variables of the workload's dataclass; None if its settings.py does not load here."""
    if not (folder / "settings.py").is_file():
        return []
    read = _alone(folder, _KINDS[0])
    names: list[str] | None = json.loads(read.stdout) if read and read.stdout.startswith("[") else None
    return names


def _refusal(folder: Path, settings: Mapping[str, str], arguments: Sequence[str]) -> str:
    """Return the trainer's sentence about the settings; "" if it takes them or does not start here at all."""
    for kind in _KINDS:
        alone = _alone(folder, kind)
        if alone and alone.returncode == 0:
            done = _read(folder, {"ACCELERATOR_KIND": kind, **settings}, arguments)
            lines = done.stderr.strip().splitlines() if done else []
            # "settings on HOST: SENTENCE", as trainkit.run.run.die writes it.
            return lines[-1].partition(": ")[2] if done and done.returncode and lines else ""
    return ""


def _refusal_of_job(folder: Path, settings: Mapping[str, str]) -> str:
    """Return what job.slurm would say of the values that it reads itself; "" on a machine without bash."""
    bash, script = shutil.which("bash"), folder.parent / "job_settings.sh"
    if not bash or not script.is_file():
        return ""
    env = {"PATH": os.environ.get("PATH", "")} | {
        name: value for name, value in settings.items() if name not in {"PATH", "BASH_ENV"}
    }
    done = subprocess.run([bash, script, folder.name], env=env, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


@cache
def _alone(folder: Path, kind: str) -> subprocess.CompletedProcess[str] | None:
    """Run the workload's settings.py with its defaults; it prints its variables before it reads any."""
    return _read(folder, {"ACCELERATOR_KIND": kind}, ())


def _read(
    folder: Path, settings: Mapping[str, str], arguments: Sequence[str], call: Sequence[str] = ()
) -> subprocess.CompletedProcess[str] | None:
    """Run the workload's settings.py; None if it takes too long, so that the trainer checks."""
    paths = json.dumps([str(folder), str(folder.parent)])
    try:
        return subprocess.run(
            [sys.executable, "-B", "-c", _READ, paths, *call],
            env=dict(settings),
            input=json.dumps(list(arguments)),
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
