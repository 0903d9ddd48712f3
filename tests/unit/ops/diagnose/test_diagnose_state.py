"""trainctl diagnose on an account: the state comes first, and what is over is no cause."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from ops import __main__
from tests.unit.ops.diagnose.diagnose_account import WELL, Answers, failing, head_node
from tests.unit.ops.fake_account import Account

STEP = "10:12:43 bootstrap: step 20-install-python failed after 3 s: no wheel"
STEP_TITLE = "A step of the bootstrap failed"
SAVED = {"2026-11-05T09-58-00.000Z-UPDATE_FAILED/cfn-init.log": STEP}
STATE = "TrainingClusterStack is UPDATE_COMPLETE since 2026-11-05 11:10 UTC.\n"
QUEUE = "6|ann|gpu|{}|NonZeroExitCode|2|1:00|1:00|(null)|mine|/fsx/training/job.slurm mine\n"
ACCOUNT = "7|ann|gpu|{}|None|2|00:01:00|01:00:00|mine\n"
RAISED = "packing.ShardError: shard 1714 has 4093 tokens\n"
FIXED = "Earlier, fixed since (a deploy succeeded at 2026-11-05 11:10 UTC):"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command on an account; return its exit code and its output."""
    monkeypatch.setattr("ops.account.head_node.time.sleep", lambda _seconds: None)

    def call(answers: Answers, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("ops.account.session.account_clients", lambda: Account(answers).client)
        monkeypatch.setattr(sys, "argv", ["trainctl", "diagnose", *arguments])
        try:
            code = __main__.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, capsys.readouterr().out

    return call


def test_a_healthy_cluster_has_nothing_to_diagnose(run: Run) -> None:
    code, output = run(failing(statuses=WELL, commands=head_node()))
    assert output.startswith(f"{STATE}No job that Slurm lists has failed")
    assert "Nothing to diagnose." in output
    assert "Filter" not in output
    assert code == 0


def test_a_failed_job_is_named_with_its_command(run: Run) -> None:
    code, output = run(failing(statuses=WELL, commands=head_node(queue=QUEUE.format("FAILED"))))
    assert "A job has failed, the last is 6 (mine, FAILED): trainctl diagnose --job 6" in output
    assert "Nothing to diagnose" not in output
    assert code == 1
    code, output = run(failing(statuses=WELL, commands=head_node(queue=QUEUE.format("COMPLETED"))))
    assert "Nothing to diagnose" in output
    assert code == 0


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_completed_job_has_nothing_to_diagnose(is_forgotten: bool, run: Run) -> None:
    states = {"accounts": ACCOUNT.format("COMPLETED")} if is_forgotten else {"job": "JobState=COMPLETED"}
    answers = failing(saved=SAVED, commands=head_node(**states, log="step 1\nCUDA out of memory.\n"))
    code, output = run(answers, "--job", "7")
    assert output.startswith(
        "Job 7 is COMPLETED.\nNothing to diagnose.\n\nIn its log, although it completed:"
    )
    assert STEP_TITLE not in output
    assert code == 0


def test_what_failed_before_the_last_success_is_no_cause(run: Run) -> None:
    answers = failing(statuses=WELL, saved=SAVED, logs={"cloud-init-output": STEP}, commands=head_node())
    code, output = run(answers)
    now, _, earlier = output.partition(f"{FIXED}\n")
    assert STEP_TITLE not in now
    assert "Nothing to diagnose." in now
    assert earlier.startswith(f"1. {STEP_TITLE}")
    assert code == 0


def test_what_failed_after_the_last_success_is_a_cause(run: Run) -> None:
    late = {key.replace("T09-58", "T11-58"): log for key, log in SAVED.items()}
    code, output = run(failing(statuses=WELL, saved=late, commands=head_node()))
    assert output.startswith(STATE)
    assert f"1. {STEP_TITLE}" in output
    assert "Earlier" not in output
    assert code == 0


def test_logs_of_a_former_cluster_are_no_cause(run: Run) -> None:
    code, output = run(failing(saved=SAVED))
    now, _, former = output.partition("Earlier, of a former cluster of this name:")
    assert "TrainingClusterStack is ROLLBACK_COMPLETE" in now
    assert "1. The head node did not signal in time" in now
    assert STEP_TITLE in former
    assert code == 0
    foundations = {name: status for name, status in WELL.items() if name.startswith("TrainingCluster-")}
    code, output = run(failing(statuses=foundations, saved=SAVED))
    assert output.startswith("There is no cluster in us-east-1.")
    assert output.index("a cluster that no longer exists") < output.index(STEP_TITLE)
    assert code == 1


def test_a_job_that_slurm_forgot_is_diagnosed_by_its_log(run: Run) -> None:
    answers = failing(statuses=WELL, saved=SAVED, commands=head_node(log=f"step 1\n{RAISED}"))
    code, output = run(answers, "--job", "7")
    now, _, earlier = output.partition(FIXED)
    assert now.startswith(f"Slurm has forgotten how job 7 ended.\n{STATE}")
    assert RAISED in now
    assert STEP_TITLE in earlier
    assert "Could not be read" not in output
    assert code == 1


def test_cluster_logs_from_the_job_on_are_current(run: Run) -> None:
    lost = {"slurm_resume": "An error occurred (InsufficientInstanceCapacity) when calling the CreateFleet"}
    for submitted, is_current in (("10:00:00", True), ("10:30:00", False)):
        job = f"JobState=NODE_FAIL Restarts=0 SubmitTime=2026-11-05T{submitted}"
        _, output = run(
            failing(statuses=WELL, logs=lost, commands=head_node(job=job, log="step 1\n")), "--job", "7"
        )
        assert output.startswith(f"Job 7 is NODE_FAIL.\n{STATE}")
        assert ("Earlier than job 7" not in output) == is_current
