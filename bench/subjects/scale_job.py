"""The work of job.slurm and launch.sh in a job of many nodes: calls to slurmctld, files, seconds."""

import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.subjects.scale_slurm import PARTITION, BigSlurm, hosts, last_said, read_log, wait_until
from rehearsal.local_slurm import SlurmError
from rehearsal.local_slurm.cluster import SYSTEM_PATH
from training_cluster.paths import TRAINING

WORKLOAD = "stub"
# One rank per node; /bin/true replaces Python, so that a rank ends at once.
_TRAIN = """\
#!/usr/bin/env bash
# Launchers: srun
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../launch.sh"
start_ranks "$here" "$here/train.py"
"""
# A wrapper of Slurm's srun, which measures the time of the steps, since Slurm's log does not have it.
# job.slurm kills the step that asks the nodes once all have answered, so another process writes its end. The
# watch runs beside the other steps. With NAMES_ONLY, all nodes answer and all steps end at once: the cores of
# one machine start 512 launch.sh in a minute, which is more than Slurm's time-outs. Then the first FAILURES
# starts of the ranks fail.
_SRUN = """\
#!/bin/sh
PATH="$WITHOUT_TIMES"
case "$*" in *--job-name=watch*) exec srun "$@" ;; esac
step() {
  case "${NAMES_ONLY:-} $*" in
    yes*" answer "*) exec scontrol show hostnames "$SLURM_JOB_NODELIST" ;;
    yes*--kill-on-bad-exit*) exit "$((START_NUMBER < FAILURES))" ;;
    yes*) exit 0 ;;
  esac
  exec srun "$@"
}
began=$(date +%s.%N)
step "$@" &
step=$!
setsid sh -c 'while [ -e /proc/$0/exe ]; do sleep 0.02; done
echo "$1 $(date +%s.%N)" >>"$STEP_TIMES"' $step "$began" &
wait $step
"""
# Each bash reads it; Slurm gives the batch script this name.
_NOTE_BEGIN = '[[ ${0##*/} != slurm_script ]] || printf "%s\\n" "$EPOCHREALTIME" >"$SCRIPT_BEGAN"\n'
_PARTITION = "export RANKS_PER_NODE=1 ACCELERATOR_KIND=none FAMILY=p5 CAPACITY=ondemand\n"
# Messages of Slurm's own daemons for each node (those of a step's end are combined in a tree), and
# requests of this benchmark itself.
_OF_NODES = {
    "MESSAGE_EPILOG_COMPLETE",
    "MESSAGE_NODE_REGISTRATION_STATUS",
    "REQUEST_COMPLETE_PROLOG",
    "REQUEST_STEP_COMPLETE",
}
_OURS = {"REQUEST_STATS_INFO", "REQUEST_STATS_RESET"}
_SETTLED_S = 2.0
_STARTS = 20
_COUNT = re.compile(r"^\s+(?P<name>[A-Z_]+)\s+\(\s*\d+\) count:(?P<count>\d+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class JobWork:
    """The measured work of one job."""

    nodes: int
    script_s: float
    """Seconds from the batch script's first line to the job's end, without those of the steps."""
    calls: Mapping[str, int]
    """Calls by kind: those of the script, of srun, and of the job's start."""
    files: int
    """Number of new files in the shared folder."""


def make_shared(folder: Path) -> dict[str, str]:
    """Make a shared folder with the job script and an idle workload; return the job's environment."""
    shared, etc = folder / "shared", folder / "etc"
    training = shared / "training"
    shutil.copytree(TRAINING, training)
    workload = training / WORKLOAD
    workload.mkdir()
    (workload / "train.sh").write_text(_TRAIN, encoding="utf-8")
    (workload / "prepare.sh").write_text("#!/usr/bin/env bash\n", encoding="utf-8")
    (workload / "requirements.txt").write_text("# none\n", encoding="utf-8")
    (etc / "partitions").mkdir(parents=True)
    (etc / "partitions" / f"{PARTITION}.env").write_text(_PARTITION, encoding="utf-8")
    python = shared / "venvs" / WORKLOAD / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/true")
    srun = folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(_SRUN, encoding="utf-8")
    srun.chmod(0o755)
    (folder / "note_begin.sh").write_text(_NOTE_BEGIN, encoding="utf-8")
    return {
        "BASH_ENV": str(folder / "note_begin.sh"),
        "SCRIPT_BEGAN": str(folder / "began"),
        "TRAINING_SHARED": str(shared),
        "TRAINING_ETC": str(etc),
        "TRAINING_VENVS": str(shared / "venvs"),
        "TRAINING_OPT": str(folder / "opt"),
        "STEP_TIMES": str(folder / "step-times"),
        "WITHOUT_TIMES": f"{os.environ['PATH']}:{SYSTEM_PATH}",
        "PATH": f"{srun.parent}:{os.environ['PATH']}:{SYSTEM_PATH}",
    }


def run_job(
    slurm: BigSlurm, nodes: int, variables: Mapping[str, str], *, has_steps: bool = True, failures: int = 0
) -> JobWork:
    """Run the job on nodes that are up. Raises SlurmError if it fails or does not end.

    Args:
        failures: number of starts of the ranks that fail, after each of which they start again; only without
            steps.
    """
    variables = {**variables, "NAMES_ONLY": "" if has_steps else "yes"}
    variables |= {"FAILURES": str(failures), "MAX_RESTARTS": str(failures)}
    shared, said = Path(variables["TRAINING_SHARED"]), slurm.layout.jobs / f"{nodes}.log"
    where = [f"--nodelist={hosts(1, nodes)}", f"--nodes={nodes}", f"--output={said}"]
    before = _files(shared)
    times = Path(variables["STEP_TIMES"])
    times.write_text("", encoding="utf-8")
    _sdiag(slurm, "--reset")
    job = slurm.submit([*where, str(shared / "training" / "job.slurm"), WORKLOAD], env=variables)
    # Watches the log, since a request to slurmctld would be counted.
    log = slurm.layout.log / "slurmctld.log"
    wait_until(lambda: f"_job_complete: JobId={job} done" in log.read_text(), what=f"the end of {said}")
    if "job.slurm: done" not in (text := said.read_text(encoding="utf-8")):
        raise SlurmError(f"The job failed: {text[-500:]}")
    counted = _settled(slurm)
    return JobWork(
        nodes=nodes,
        script_s=_ended(slurm, job)
        - float(Path(variables["SCRIPT_BEGAN"]).read_text(encoding="utf-8"))
        - steps_s(times.read_text(encoding="utf-8")),
        calls={name: count for name, count in counted.items() if name not in _OF_NODES},
        files=len(_files(shared) - before),
    )


def steps_s(times: str) -> float:
    """Return the seconds of all steps. Each step has a line with its start and end."""
    return sum(float(end) - float(began) for began, end in (line.split() for line in times.splitlines()))


def launch_s(*, variables: Mapping[str, str], nodes: int) -> float:
    """Return the seconds of train.sh, and so launch.sh, as one rank of a job of `nodes` nodes, without Slurm.

    They are the median of starts one after the other, the rank (/bin/true) included.
    """
    shared = Path(variables["TRAINING_SHARED"])
    train, run = shared / "training" / WORKLOAD / "train.sh", shared / "runs" / "one-node"
    # job.slurm makes these folders.
    for folder in ("logs/1-0", "flight/1-0"):
        (run / folder).mkdir(parents=True, exist_ok=True)
    job = {
        "LAUNCHER": "srun",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "12001",
        "NNODES": str(nodes),
        "NPROC_PER_NODE": "1",
        "EXPECTED_WORLD_SIZE": str(nodes),
        "RUN_DIR": str(run),
        "ACCELERATOR_KIND": "none",
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_NODEID": "1",
        "SLURM_PROCID": "1",
        "SLURM_LOCALID": "0",
        "SLURMD_NODENAME": "node-1",
    }
    seconds = []
    for _ in range(_STARTS):
        began = time.perf_counter()
        subprocess.run(["bash", train], env={**os.environ, **variables, **job}, check=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _ended(slurm: BigSlurm, job: int) -> float:
    """Return the time of the job's end, in seconds since the epoch."""
    log = read_log((slurm.layout.log / "slurmctld.log").read_text(encoding="utf-8"))
    return last_said(log, f"_job_complete: JobId={job} done ")


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _settled(slurm: BigSlurm) -> dict[str, int]:
    """Count all messages of a job that has ended; the nodes' own messages arrive later."""
    counted: dict[str, int] = {}
    while counted != (now := parse_calls(_sdiag(slurm))):
        counted = now
        time.sleep(_SETTLED_S)
    return counted


def parse_calls(said: str) -> dict[str, int]:
    """Parse sdiag's output: messages that slurmctld received, by kind, without those of sdiag itself."""
    found = {each["name"]: int(each["count"]) for each in _COUNT.finditer(said)}
    return {name: count for name, count in found.items() if name not in _OURS}


def _sdiag(slurm: BigSlurm, *arguments: str) -> str:
    done = subprocess.run(
        ["sdiag", *arguments], env=slurm.client_env(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SlurmError(f"sdiag: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
