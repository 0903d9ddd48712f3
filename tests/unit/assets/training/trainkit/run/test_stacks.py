"""Files of the ranks' Python stacks."""

import faulthandler
import signal
from pathlib import Path

import pytest
from trainkit.run import stacks

from tests.unit.assets.training.trainkit.run.runs import a_run
from tests.unit.assets.training.waiting import wait_until


def test_a_rank_writes_its_stacks_at_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("START_NUMBER", "1")
    monkeypatch.setenv("SLURMD_NODENAME", "node-1")
    run = a_run(tmp_path, rank=1)
    folder = stacks.folder_of(run.run_dir)
    assert folder == run.run_dir / "stacks" / "17-1"
    stacks.register(run)
    try:
        (before,) = stacks.read(folder)
        assert (before.rank, before.host, before.innermost) == (1, "node-1", "")
        monkeypatch.setenv("SLURMD_NODENAME", "node-2")
        stacks.signal_ranks(folder)
        assert stacks.read(folder) == [before], "that rank is on another node"
        monkeypatch.setenv("SLURMD_NODENAME", "node-1")
        stacks.signal_ranks(folder)
        wait_until(lambda: "in signal_ranks" in stacks.read(folder)[0].innermost, what="no stack is written")
    finally:
        faulthandler.unregister(signal.SIGUSR1)


def test_a_node_signals_its_own_running_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a hang all nodes of a large job open files at once, on shared storage."""
    monkeypatch.setenv("SLURMD_NODENAME", "node-1")
    opened: list[str] = []
    real = Path.read_text
    for node in ("node-1", "node-2"):
        (tmp_path / node).mkdir()
        (tmp_path / node / f"rank-{node[-1]}.txt").write_text(f"rank 1 on {node}, process 4194305\n")
    (tmp_path / "node-1" / "rank-0.txt").write_text("a torn line")

    def read_text(path: Path, encoding: str, errors: str) -> str:
        opened.append(path.name)
        return real(path, encoding=encoding, errors=errors)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", read_text)
        stacks.signal_ranks(tmp_path)  # process 4194305 has ended
    assert sorted(opened) == ["rank-0.txt", "rank-1.txt"]
    assert sorted(each.host for each in stacks.read(tmp_path)) == ["node-1", "node-2"]
