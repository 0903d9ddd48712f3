"""The end of a terminal interrupts `trainctl verify` as Ctrl-C does."""

import errno
import io
import os
import signal
import sys

import pytest

from ops.commands.verify import say
from ops.verify.interruption import as_ctrl_c, held


@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGTERM])
def test_a_second_signal_does_not_interrupt_the_cleanup(sent: signal.Signals) -> None:
    cleaned = False
    with pytest.raises(KeyboardInterrupt), as_ctrl_c():
        try:
            os.kill(os.getpid(), sent)
        finally:
            os.kill(os.getpid(), sent)
            cleaned = True
    assert cleaned
    assert signal.getsignal(sent) is signal.SIG_DFL


def test_nohup_stays_in_force() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with as_ctrl_c():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


class ClosedTerminal(io.StringIO):
    """A terminal that has gone: every write fails."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_a_closed_terminal_stops_no_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", ClosedTerminal())
    say("cancelling job 12")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGHUP])
def test_what_is_held_together_ends_before_the_interruption(sent: signal.Signals) -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), as_ctrl_c(), held():
        os.kill(os.getpid(), sent)
        done = True
    assert done
