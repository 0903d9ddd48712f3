"""Fixtures of trainctl's tests: a fake cluster, and trainctl in this process."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.__main__ import main
from tests.unit.ops.jobs_head_node import Call, PlayedCluster
from tests.unit.ops.own_account import OwnAccount

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
