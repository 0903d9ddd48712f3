"""The agent of the local head node: it runs five commands at a time, and ends them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ops.account.head_node import as_user
from rehearsal.local_aws.head_node.agent import BUFFER, MOST_BYTES, WORKERS, Agent, Outcome
from rehearsal.local_aws.head_node.run_commands import run
from tests.unit.rehearsal.local_aws.head_node.test_run_commands import played


def test_late_command_is_killed_with_its_children(tmp_path: Path) -> None:
    shell = played(tmp_path, f"sleep 60 & echo $! >{tmp_path}/child; echo begun; trap '' TERM; sleep 60")
    ended = run(as_user("squeue"), shell, agent=Agent(), execution_s=0.5)
    assert ended == Outcome(status="TimedOut", details="Execution Timed Out", code=137, stdout="begun\n")
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    for _ in range(100):
        if not child.exists() or child.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("what the command started lives on")


@pytest.mark.parametrize(
    ("stream", "bytes_", "is_cut"),
    [(1, MOST_BYTES - 1, False), (1, MOST_BYTES, True), (2, MOST_BYTES, True), (2, 90_000, True)],
)
def test_long_output_ends_with_agents_mark(tmp_path: Path, stream: int, bytes_: int, is_cut: bool) -> None:
    shell = played(tmp_path, f"head -c {bytes_} /dev/zero | tr '\\0' a >&{stream}")
    ended = run(as_user("squeue"), shell, agent=Agent())
    said = ended.stdout or ended.stderr
    assert len(said) == min(bytes_, MOST_BYTES)
    assert said.endswith("a--output truncated--") is is_cut


def test_a_command_that_is_cancelled_ends(tmp_path: Path) -> None:
    cancelled = threading.Event()
    shell = played(tmp_path, "sleep 60")
    ended = run(as_user("squeue"), shell, agent=Agent(), cancelled=cancelled, start=cancelled.set)
    assert (ended.status, ended.code) == ("Cancelled", 137)


def test_agent_runs_five_and_holds_five_commands(tmp_path: Path) -> None:
    agent, cancelled = Agent(), threading.Event()
    taken, begun = threading.Semaphore(0), list[int]()
    shell = played(tmp_path, "sleep 60")

    def hang() -> Outcome:
        return run(
            as_user("squeue"),
            shell,
            agent=agent,
            cancelled=cancelled,
            take=taken.release,
            start=lambda: begun.append(1),
        )

    with ThreadPoolExecutor(WORKERS + BUFFER) as pool:
        hung = [pool.submit(hang) for _ in range(WORKERS + BUFFER)]
        assert all(taken.acquire(timeout=10) for _ in hung)
        ended = run(as_user("squeue"), shell, agent=agent, delivery_s=0.3)
        assert (ended.status, ended.details, ended.code) == ("TimedOut", "Delivery Timed Out", -1)
        assert len(begun) == WORKERS
        cancelled.set()
        assert {each.result(10).status for each in hung} == {"Cancelled"}
