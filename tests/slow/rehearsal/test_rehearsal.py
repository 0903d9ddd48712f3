"""The rehearsal as a person runs it: as a process, to its end, and interrupted."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rehearsal.processes import find
from rehearsal.workspace import MARKER
from training_cluster.paths import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r")


def _command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "ops", "rehearse", "--folder", str(folder), *arguments]


# How the tools that a rehearsal runs name what they leave in the temporary and the home folder.
_OURS = re.compile(r"\.?(aws|cdk|jsii|ministack|node-compile|parallelcluster|pcluster|slurm|torch)")


def _files_elsewhere() -> set[Path]:
    """List all files of tools like ours in the temporary folder and at home."""
    ours = [p for folder in (Path("/tmp"), Path.home()) for p in folder.iterdir() if _OURS.match(p.name)]
    return {file for path in ours for file in [path, *path.rglob("*")]}


@pytest.mark.nightly
def test_a_rehearsal_tears_down_and_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/slow/ops/test_cli.py looks at what a rehearsal makes."""
    monkeypatch.setenv("HOME", str(tmp_path))  # tests beside this one write to the real ~/.cdk
    before = _files_elsewhere()
    done = subprocess.run(_command(folder), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "Rehearsed in" in done.stdout
    assert find({MARKER: str(folder)}) == set()
    assert _files_elsewhere() <= before


@pytest.mark.nightly
def test_commands_of_a_kept_rehearsal_work(folder: Path) -> None:
    try:
        command = _command(folder, "--family", "m6i", "--nodes", "1", "--keep")
        short = os.environ | {"MAX_STEPS": "20", "WARMUP_STEPS": "5"}  # of all three trainings
        done = subprocess.run(command, cwd=ROOT, env=short, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        _, printed = done.stdout.split("In a new shell, for example:\n")
        steps = [line.strip() for line in printed.splitlines() if line.startswith("   ")]
        assert len(steps) > 5
        said = _typed("".join(f"echo '$ '{shlex.quote(step)}\n{step}\n" for step in steps))
    finally:
        stopped = subprocess.run(
            [sys.executable, "-m", "rehearsal", "--folder", str(folder), "stop"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    assert stopped.stdout.startswith("Stopped "), stopped.stderr
    assert find({MARKER: str(folder)}) == set()
    assert "world size 3" in said
    rows = re.findall(r"^cpu\* +up +infinite +(\d+) +idle(?!\*)", said, re.MULTILINE)  # idle, idle~, idle#
    assert sum(map(int, rows)) == 3, "sinfo has the nodes of the deploy, powered down or not"


def _typed(commands: str) -> str:
    """Type commands into a new shell, which ends at the first that fails; return what they print."""
    done = subprocess.run(
        ["bash", "--norc", "-e"], input=commands, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.mark.parametrize(
    "step", ["TrainingCluster-Network: CREATE_COMPLETE", pytest.param("4. Train", marks=pytest.mark.nightly)]
)
def test_an_interrupted_rehearsal_stops_everything(folder: Path, step: str) -> None:
    with subprocess.Popen(
        _command(folder), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if step in line:
                break
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait(60) == 130
    assert "everything that was started is stopped" in said
    assert "Traceback" not in said
    assert find({MARKER: str(folder)}) == set()
