"""Each command of a rehearsal ends with an exit code, and a failure is one message."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal import commands
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.run import INTERRUPTS
from rehearsal.workspace import Workspace
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (None, 0, ""),
        (RehearsalError("no Slurm"), 1, "\nRehearsal: no Slurm\n"),
        (ConfigurationError("family=x"), 2, "\nRehearsal: family=x\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted: everything that was started is stopped.\n"),
    ],
)
def test_a_failure_is_one_message_and_an_exit_code(
    error: BaseException | None, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(workspace: Workspace, _: Narrator) -> None:
        assert workspace.root == tmp_path
        if error:
            raise error

    assert commands.run_command(work, tmp_path) == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("number", INTERRUPTS)
def test_each_signal_that_ends_a_program_interrupts_the_work(number: signal.Signals, tmp_path: Path) -> None:
    former = signal.signal(number, signal.SIG_IGN)
    try:
        assert commands.run_command(lambda *_: signal.raise_signal(number), tmp_path) == 130
        assert signal.getsignal(number) is signal.SIG_IGN, "as it was before"
    finally:
        signal.signal(number, former)


def _trainctl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ops", "rehearse", "--folder", str(folder), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_as_json_only_the_object_is_on_stdout(tmp_path: Path) -> None:
    done = _trainctl(tmp_path, "--stop", "--json")
    assert (done.returncode, done.stderr) == (0, "Nothing was running.\n")
    assert json.loads(done.stdout) == {"stopped": True, "exit_code": 0}


@pytest.mark.slow
def test_a_wrong_option_is_one_message_and_its_exit_code_is_in_the_json(tmp_path: Path) -> None:
    done = _trainctl(tmp_path, "--workload", "gpt3", "--json")
    assert done.returncode == 2
    assert '--workload gpt3: no such workload. Did you mean "gpt2"?' in done.stderr
    assert "type:    trainctl rehearse --workload" in done.stderr
    assert json.loads(done.stdout) == {
        "family": "p4d",
        "workload": "gpt3",
        "nodes": "2",
        "container": False,
        "kept": False,
        "exit_code": 2,
    }
    assert list(tmp_path.iterdir()) == []
