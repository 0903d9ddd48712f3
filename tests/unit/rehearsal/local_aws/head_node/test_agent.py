"""The agent of the local head node: it runs five commands at a time, and ends them."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ops.account.head_node import as_user
from rehearsal.local_aws.head_node.agent import BUFFER, MOST_BYTES, WORKERS, Agent, Outcome
from rehearsal.local_aws.head_node.run_commands import run


def execute(script: str, environment: dict[str, str]) -> tuple[int, str, str]:
    outcome = run(script, environment, agent=Agent())
    return outcome.code, outcome.stdout, outcome.stderr


def environment(shared: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "TRAINING_SHARED": str(shared)}


def test_a_command_that_runs_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    shell = played(tmp_path, f"sleep 60 & echo $! >{tmp_path}/child; echo begun; trap '' TERM; sleep 60")
    ended = run(as_user("squeue"), shell, agent=Agent(), execution_s=0.5)
    assert ended == Outcome(status="TimedOut", details="Execution Timed Out", code=137, stdout="begun\n")
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    for _ in range(100):
        if not child.exists() or child.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("what the command started lives on")


@pytest.mark.parametrize("stream", ["1", "2"])
@pytest.mark.parametrize(("bytes_", "is_cut"), [(MOST_BYTES - 1, False), (MOST_BYTES, True), (90_000, True)])
def test_long_output_ends_with_the_agents_mark(
    tmp_path: Path, bytes_: int, is_cut: bool, stream: str
) -> None:
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


def test_five_commands_run_at_a_time_five_more_are_held_and_the_next_is_not_delivered(tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_a_command_that_is_held_starts_late_even_where_it_was_given_up(tmp_path: Path) -> None:
    agent, cancelled, begun = Agent(), threading.Event(), threading.Semaphore(0)
    shell = played(tmp_path, f"[[ $1 == late ]] && touch {tmp_path}/ran || sleep 60")
    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in range(WORKERS):
            pool.submit(run, as_user("squeue"), shell, agent=agent, cancelled=cancelled, start=begun.release)
        assert all(begun.acquire(timeout=10) for _ in range(WORKERS))
        ended = run(as_user("squeue", "late"), shell, agent=agent, delivery_s=0.1, execution_s=0.1)
        assert (ended.status, ended.code) == ("TimedOut", -1)
        assert not (tmp_path / "ran").exists()
        cancelled.set()
    for _ in range(100):
        if (tmp_path / "ran").exists():
            return
        time.sleep(0.05)
    pytest.fail("it never started")


def played(folder: Path, script: str) -> dict[str, str]:
    """A head node whose squeue is this script."""
    program = folder / "squeue"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return environment(folder) | {"PATH": f"{folder}:{os.environ['PATH']}"}
