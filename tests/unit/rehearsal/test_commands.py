"""Each command of a rehearsal ends with an exit code, and a failure is one message."""

import signal
from pathlib import Path

import pytest

from rehearsal import commands
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.run import INTERRUPTS
from rehearsal.workspace import Workspace
from training_cluster.problems import ConfigurationError


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (None, 0, ""),
        (RehearsalError("no Slurm"), 1, "\nRehearsal: no Slurm\n"),
        (ConfigurationError("family=x"), 2, "\nRehearsal: family=x\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted: everything that was started is stopped.\n"),
    ],
)
def test_failure_is_one_message_and_a_code(
    error: BaseException | None, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(workspace: Workspace, _: Narrator) -> None:
        assert workspace.root == tmp_path
        if error:
            raise error

    assert commands.run_command(work, tmp_path) == code
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("number", INTERRUPTS)
def test_ending_signal_interrupts_the_work(number: signal.Signals, tmp_path: Path) -> None:
    former = signal.signal(number, signal.SIG_IGN)
    try:
        assert commands.run_command(lambda *_: signal.raise_signal(number), tmp_path) == 130
        assert signal.getsignal(number) is signal.SIG_IGN, "as it was before"
    finally:
        signal.signal(number, former)
