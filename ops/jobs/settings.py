"""Checks the settings of a job before a node starts, by the workload's own code on this machine.

A workload's settings.py declares a dataclass `Settings` and a function `read_settings(arguments)`, and needs
no package. What a trainer reads elsewhere is known by its name alone: one in quotes in a module that the
workload has or imports, or a variable of a script. A function `check_job(settings, nodes)`
beside them refuses what cannot run on that many nodes of the partition.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from modulefinder import ModuleFinder
from pathlib import Path

from ops.usage import UsageError
from training_cluster.cluster.job_environment import FACTS
from training_cluster.paths import TRAINING
from training_cluster.problems import did_you_mean

# Prefixes of variables of programs, which any job may set.
OF_PROGRAMS = (
    *("CUDA_", "CUBLAS_", "FI_", "GLOO_", "GOMP_", "HF_", "I_MPI_", "KMP_", "LD_", "MALLOC_", "MKL_"),
    *("MLFLOW_", "NCCL_", "NEURON_", "NVTE_", "OFI_", "OMP_", "PIP_", "PYTHON", "PYTORCH_", "RAYON_"),
    *("SBATCH_", "SLURM_", "TOKENIZERS_", "TORCH", "TRITON_", "WANDB_", "XLA_"),
)
# What the partition's file and job.slurm set after the settings.
OF_JOBS = {
    *FACTS,
    *("MASTER_ADDR", "MASTER_PORT", "NNODES", "EXPECTED_WORLD_SIZE", "RUN_DIR", "DATA_DIR", "CHECKPOINT_DIR"),
    *("START_STEP", "KILL_WAIT_S", "SPOT_NOTICE"),
} - {"MIXED_PRECISION"}
_IN_QUOTES = re.compile(r"""(?<=["'])[A-Z][A-Z0-9_]*(?=["'])""")
_IN_SCRIPTS = re.compile(r"(?:(?<=\$)|(?<=\$\{)|(?<=check_word ))[A-Z][A-Z0-9_]*")
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
    known = {*fields, *_names_in(folder, training)}
    for name in settings:
        if name in OF_JOBS:
            raise UsageError(
                f"--set {name}: the job itself sets it, from its nodes and its run, and would ignore yours.\n"
                "  allowed: NPROC_PER_NODE for the ranks of a node, RUN_NAME for the run's folders"
            )
        if name not in known and not name.startswith(OF_PROGRAMS):
            raise UsageError(
                f"--set {name}: neither {workload} nor job.slurm reads such a variable."
                f"{did_you_mean(name.upper(), fields or sorted(known))}\n"
                f"  allowed: {', '.join(fields) or f'the variables of {folder}/README.md'}\n"
                f"  type:    --env {name}={settings[name]}, if your own program reads it"
            )
    if refusal := _refusal_of_job(folder, settings):
        raise UsageError(f"job.slurm would refuse these settings: {refusal}")
    if fields and (refusal := _refusal(folder, settings, arguments)):
        raise UsageError(f"{workload} would refuse these settings: {refusal}\n  docs:    {folder}/README.md")
    return ""


def has_check_of_nodes(workload: str, *, training: Path = TRAINING) -> bool:
    """Return True if the workload's code on this machine checks jobs against their nodes."""
    file = training / workload / "settings.py"
    return file.is_file() and "\ndef check_job(" in file.read_text(encoding="utf-8")


def check_on_nodes(
    workload: str,
    settings: Mapping[str, str],
    arguments: Sequence[str],
    *,
    nodes: int,
    facts: Mapping[str, str],
    training: Path = TRAINING,
) -> None:
    """Check a job against the nodes that it asks for, by the workload's own `check_job`.

    Args:
        settings: environment variables of the job.
        arguments: arguments of the workload.
        nodes: number of nodes of the job.
        facts: environment of the jobs of these nodes (cluster/job_environment.py).
        training: folder of the workloads.

    Raises:
        UsageError: the trainer would refuse to run on these nodes.
    """
    _ask("check_job", training / workload, settings, arguments, nodes=nodes, facts=facts)


def expect_on_nodes(
    workload: str,
    settings: Mapping[str, str],
    *,
    nodes: int,
    facts: Mapping[str, str],
    training: Path = TRAINING,
) -> str:
    """Return what the workload's own `expect_job` says of a job, in JSON. Arguments as of check_on_nodes.

    Raises:
        UsageError: the workload has no such function, or the trainer would refuse to run on these nodes.
    """
    found = sorted(
        file.parent.name
        for file in training.glob("*/settings.py")
        if "\ndef expect_job(" in file.read_text(encoding="utf-8")
    )
    if workload not in found:
        raise UsageError(
            f'price: nothing is known about the speed of "{workload}".{did_you_mean(workload, found)}\n'
            f"  allowed: {', '.join(found)}\n"
            "  type:    trainctl price --tokens-per-s N, with the speed of your own run"
        )
    return _ask("expect_job", training / workload, settings, (), nodes=nodes, facts=facts)


def _ask(
    function: str,
    folder: Path,
    settings: Mapping[str, str],
    arguments: Sequence[str],
    *,
    nodes: int,
    facts: Mapping[str, str],
) -> str:
    """Return what a function of a workload's settings.py says of a job; raises UsageError if it refuses."""
    done = _read(folder, {**facts, **settings}, arguments, (function, str(nodes)))
    if done and done.returncode and (lines := done.stderr.strip().splitlines()):
        where = f"{nodes} x {facts.get('INSTANCE_TYPE', 'these nodes')}"
        raise UsageError(
            f"{folder.name} would refuse to run on {where}: {lines[-1].partition(': ')[2]}\n"
            f"  docs:    {folder}/README.md"
        )
    return done.stdout.splitlines()[-1] if done else ""


def _declared(folder: Path) -> list[str]:
    """Return the variables of the workload's dataclass; none if it has no settings.py that loads here."""
    read = _alone(folder, _KINDS[0])
    names: list[str] = json.loads(read.stdout) if read and read.stdout.startswith("[") else []
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


def _names_in(folder: Path, training: Path) -> set[str]:
    """Return the names that may be variables in the modules and scripts of a workload and of every job."""
    finder = ModuleFinder([str(folder), str(training)])
    modules = {*folder.glob("*.py"), *training.glob("trainkit/notify.py")}
    for file in modules:
        with suppress(SyntaxError):  # of a newer Python
            finder.run_script(str(file))
    imported = (getattr(each, "__file__", None) for each in finder.modules.values())
    modules |= {Path(file) for file in imported if file}
    scripts = [*folder.glob("*.sh"), *training.glob("*.sh"), *training.glob("*.slurm")]
    return {
        name
        for pattern, files in ((_IN_QUOTES, modules), (_IN_SCRIPTS, scripts))
        for file in files
        for name in pattern.findall(file.read_text(encoding="utf-8"))
    }
