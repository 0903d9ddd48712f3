"""A rehearsal: from a clone to the first loss, and from sbatch to the first step, against plain torchrun."""

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from bench.first_step import FAMILY, WORKLOAD, ready
from bench.measuring.programs import BaselineError, limited, ratios, run, start, turns
from bench.measuring.result import Result, Row, at_most
from training_cluster.paths import ROOT

TITLE = "a rehearsal, and what sbatch adds to torchrun"
ROUNDS = 3
_GOAL, _WARM_S = 1.3, 25
_TIMEOUT_S = 600
_FIRST_LOSS = "step 1: loss"
_STEP = re.compile(r"^\d+\. (?P<title>.+)\n(?:.*\n)*?   done in (?P<seconds>\d+) s$", re.MULTILINE)
# Variables of a surrounding make, and folders of its environments, which the clone must not inherit.
_NOT_HANDED_ON = (
    "MAKEFLAGS",
    "MAKEOVERRIDES",
    "MFLAGS",
    "MAKELEVEL",
    "TRAINING_VENVS",
    "PYTHONPYCACHEPREFIX",
)


def measure() -> Result:
    """Rehearse twice in a clone, then alternate the two ways to a first step."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        clone = Path(folder) / "clone"
        run(["git", "clone", "--quiet", ROOT, clone], cwd=ROOT, environment=os.environ)
        cold = time.perf_counter() - began + to_first_loss(clone)[0]
        warm, steps = to_first_loss(clone)
    with tempfile.TemporaryDirectory() as folder, ready(Path(folder)) as works:
        seconds = turns(works, rounds=ROUNDS)
    return Result(
        rows=[
            Row(name="from a clone to the first loss, cold", measured=f"{cold:.0f} s"),
            at_most("from make rehearse to the first loss, warm", [warm], _WARM_S, " s"),
            at_most(
                "sbatch to the first step, against bare torchrun",
                ratios(seconds["sbatch"], seconds["bare torchrun"]),
                _GOAL,
            ),
        ],
        figures={"cold_s": cold, "warm_s": warm, "warm_steps_s": steps, "first_step_s": seconds},
        notes=[
            f"Cold: `git clone` of the committed files, then `make rehearse FAMILY={FAMILY} "
            f"WORKLOAD={WORKLOAD}`, with the package caches of this checkout. Warm: the same command again "
            "in the same clone. Each run stops at its first loss. Of the warm run: "
            f"{', '.join(f'{title.lower()} {seconds} s' for title, seconds in steps.items())}; the rest "
            "is the check of the environments, and sbatch until the first loss.",
            "sbatch runs job.slurm on a local Slurm with two running nodes. Its time includes the job's "
            "checks and a preparation with nothing to do. torchrun runs the same trainer with the same "
            "settings on the same two ranks.",
        ],
    )


def to_first_loss(clone: Path) -> tuple[float, dict[str, int]]:
    """Return the seconds from `make rehearse` to the first loss, and to the end of each step before.

    The rehearsal is then interrupted.

    Raises:
        BaselineError: the rehearsal ended before.
    """
    began = time.perf_counter()
    command = ["make", "rehearse", f"FAMILY={FAMILY}", f"WORKLOAD={WORKLOAD}"]
    process = start(command, cwd=clone, environment=_environment())
    said: list[str] = []
    seconds = None
    with limited(process, _TIMEOUT_S):
        assert process.stdout
        for line in process.stdout:
            said.append(line)
            if seconds is None and _FIRST_LOSS in line:
                seconds = time.perf_counter() - began
                _interrupt(process)
        process.wait()
    if seconds is None:
        raise BaselineError(f"make rehearse in {clone} printed no first loss:\n" + "".join(said[-20:]))
    return seconds, {found["title"]: int(found["seconds"]) for found in _STEP.finditer("".join(said))}


def _interrupt(process: subprocess.Popen[str]) -> None:
    """Send SIGINT to the rehearsal itself, which stops all that it started; make would not wait for it."""
    for each in psutil.Process(process.pid).children(recursive=True):
        if each.cmdline()[2:3] == ["rehearse"]:
            each.send_signal(signal.SIGINT)


def _environment() -> dict[str, str]:
    own = (str(ROOT / ".venv" / "bin"), str(ROOT / "node_modules" / ".bin"))
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON}
    path = [each for each in kept["PATH"].split(":") if each not in own]
    caches = {
        "PIP_CACHE_DIR": str(ROOT / ".cache" / "pip"),
        "npm_config_cache": str(ROOT / ".cache" / "npm"),
    }
    return {**kept, "PATH": ":".join(path), **{name: kept.get(name, at) for name, at in caches.items()}}
