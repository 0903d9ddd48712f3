"""Fixtures of trainctl's tests: a fake cluster, and trainctl in this process."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ops.__main__ import main
from ops.pcluster.update_policies import Refused
from tests.unit.ops.fake_account import Account
from tests.unit.ops.jobs_head_node import Call, PlayedCluster
from tests.unit.ops.own_account import OwnAccount

ActsOn = Callable[..., Account]
_accounts: list[OwnAccount] = []


@pytest.fixture
def own() -> Iterator[OwnAccount]:
    """Yield an account with one's own network and storage; what a test changes in it is undone."""
    if not _accounts or not _accounts[0].exists:
        _accounts[:] = [OwnAccount()]
    yield _accounts[0]
    _accounts[0].reset()


@pytest.fixture
def everything(own: OwnAccount) -> OwnAccount:
    """An account in which our stacks made the network and the storage, and a cluster."""
    own.show_stacks()
    return own


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedCluster]:
    """Yield a fake cluster, which every trainctl command of this process calls without waiting."""
    played = PlayedCluster(tmp_path)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: played.client)
    monkeypatch.setattr("ops.account.head_node._FIRST_POLL_S", 0.01)
    monkeypatch.setattr("ops.jobs.follow.POLL_S", 0)
    yield played


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs trainctl in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with monkeypatch.context() as typed:
            typed.setattr(sys, "argv", ["trainctl", *arguments])
            try:
                code = main()
            except SystemExit as end:
                code = int(end.code or 0)
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the commands that ran; the library refuses no change."""
    commands: list[str] = []

    def run(words: list[str], **_: Any) -> Any:
        commands.append(" ".join(words))
        return subprocess.CompletedProcess(words, 7)

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("ops.pcluster.update_policies.ask_library", lambda pairs: [Refused()] * len(pairs))
    monkeypatch.setattr("ops.account.head_node.time.sleep", lambda _: None)
    return commands


@pytest.fixture
def acts_on(monkeypatch: pytest.MonkeyPatch) -> ActsOn:
    """Let trainctl act on an account with a cluster of these flags."""

    from tests.unit.ops.plan import test_plan  # noqa: PLC0415 - most tests do without

    def account_of(**flags: Any) -> Account:
        account = test_plan.deployed(**flags)
        monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
        return account

    return account_of
