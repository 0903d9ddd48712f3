"""trainctl diagnose on an account: the state comes first, and what is over is no cause."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.ops.diagnose.diagnose_account import WELL, Answers, failing, head_node
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import Call, job_line

STEP = "10:12:43 bootstrap: step 20-install-python failed after 3 s: no wheel"
STEP_TITLE = "A step of the bootstrap failed"
SAVED = {"2026-11-05T09-58-00.000Z-UPDATE_FAILED/cfn-init.log": STEP}
STATE = "TrainingClusterStack is UPDATE_COMPLETE since 2026-11-05 11:10 UTC.\n"
QUEUE = job_line("{}", "{}", id_="6", name="mine", command="/fsx/training/job.slurm mine")
ACCOUNT = "7|gpu|ann|{}|None|2|00:01:00|01:00:00|mine\n"
TASKS = "7_0|gpu|a|COMPLETED|None|2|1:00|1:00|m\n7_1|gpu|a|{}|None|2|1:00|1:00|m\n"
RAISED = "packing.ShardError: shard 1714 has 4093 tokens\n"
FIXED = "Earlier; a deploy has succeeded since, at 2026-11-05 11:10 UTC:"
Run = Callable[..., tuple[int, str]]
FORMER = ("--cluster", "training")


@pytest.fixture
def run(call: Call, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on an account; return its exit code and its output."""
    monkeypatch.setattr("ops.account.head_node.time.sleep", lambda _seconds: None)

    def diagnose(answers: Answers, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("ops.account.session.account_clients", lambda: Account(answers).client)
        return call("diagnose", *arguments)[:2]

    return diagnose


def test_a_healthy_cluster_has_nothing_to_diagnose(run: Run) -> None:
    code, output = run(failing(statuses=WELL, commands=head_node()))
    assert output.startswith(f"{STATE}No job that Slurm lists has failed")
    assert "Nothing to diagnose." in output
    assert "Filter" not in output
    assert code == 0
    for state, reason in (
        ("COMPLETED", "None"),
        ("CANCELLED", "None"),
        ("RUNNING", "None"),
        ("PENDING", "Resources"),
        ("PENDING", "QOSMaxJobsPerUserLimit"),
    ):
        code, output = run(failing(statuses=WELL, commands=head_node(queue=QUEUE.format(state, reason))))
        assert "Nothing to diagnose." in output
        assert code == 0


def test_a_failed_job_is_named_with_its_command(run: Run) -> None:
    failed = QUEUE.format("FAILED", "NonZeroExitCode").replace("6", "6_3", 1)
    code, output = run(failing(statuses=WELL, commands=head_node(queue=failed)))
    assert (
        "A job has failed, the last is 6_3 (mine, FAILED): trainctl diagnose --cluster training --job 6_3"
        in output
    )
    assert "Nothing to diagnose" not in output
    assert code == 1
    accounts = ACCOUNT.format("OUT_OF_MEMORY")
    code, output = run(failing(statuses=WELL, commands=head_node(queue=failed, accounts=accounts)))
    assert "2 jobs have failed, the last is 7 (mine, OUT_OF_MEMORY)" in output


def test_what_cannot_start_is_something_to_diagnose(run: Run) -> None:
    for slurm, sentence in (
        (
            {"queue": QUEUE.format("PENDING", "launch failed requeued held").replace("6", "6_[1-9]", 1)},
            "A job does not start, the first is 6 (mine; its start failed, and it is held until "
            "`scontrol release`): trainctl diagnose --cluster training --job 6",
        ),
        (
            {"nodes": "gpu*|up|drained|2|gpu-dy-[1-2]|Unknown|broken fan"},
            "Nodes accept no jobs, gpu-dy-[1-2] (drained: broken fan): trainctl status",
        ),
        (
            {"nodes": "gpu*|inact|idle~|2|gpu-dy-[1-2]|Unknown|none"},
            "Partition gpu is inact and starts no jobs: trainctl status",
        ),
    ):
        code, output = run(failing(statuses=WELL, commands=head_node(**dict[str, Any](slurm))))
        assert sentence in output
        assert "Nothing to diagnose" not in output
        assert code == 1


def test_an_unread_source_limits_the_answer(run: Run) -> None:
    answers = failing(statuses=WELL, commands=head_node())
    _, output = run({**answers, "DescribeLogGroups": Refused("AccessDenied")})
    assert "Nothing to diagnose in what could be read.\n\nCould not be read:\n  CloudWatch logs" in output
    _, output = run({**answers, "DescribeInstances": {"Reservations": []}})
    assert "Nothing to diagnose" not in output
    assert "Slurm: EC2 lists no head node of the cluster training." in output


def test_a_mend_names_the_cluster_that_was_found(run: Run) -> None:
    _, output = run(failing(reason="A stack named training exists already and was not made by it"))
    assert "trainctl deploy --cluster training -c cluster_name=training-2" in output


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_completed_job_has_nothing_to_diagnose(is_forgotten: bool, run: Run) -> None:
    states: dict[str, Any] = (
        {"accounts": ACCOUNT.format("COMPLETED")} if is_forgotten else {"job": {"state": "COMPLETED"}}
    )
    answers = failing(saved=SAVED, commands=head_node(**states, log="step 1\nCUDA out of memory.\n"))
    code, output = run(answers, "--job", "7")
    assert output.startswith("Job 7 is COMPLETED.\nNothing to diagnose.\n\nIn its log, although it")
    assert STEP_TITLE not in output
    assert code == 0


def test_an_exception_of_a_completed_job_is_shown(run: Run) -> None:
    answers = failing(statuses=WELL, commands=head_node(job={"state": "COMPLETED"}, log=f"step 1\n{RAISED}"))
    code, output = run(answers, "--job", "7")
    _, _, shown = output.partition("In its log, although it completed:\n")
    assert shown.startswith("1. An error that no rule explains:")
    assert RAISED in shown
    assert code == 0


def test_an_array_has_completed_with_its_last_task(run: Run) -> None:
    for tasks, accounts, sentence in (
        ({0: "COMPLETED", 1: "FAILED None 1:0"}, "", "Job 7_1 is FAILED (exit code 1)."),
        ({0: "COMPLETED", 1: "RUNNING", 2: "FAILED None 1:0"}, "", "Job 7_2 is FAILED (exit code 1)."),
        ({0: "COMPLETED", 1: "RUNNING"}, "", "is RUNNING."),
        ({1: "COMPLETED"}, "7_0|gpu|ann|FAILED|None|2|1:00|1:00|mine\n", "Job 7_0 is FAILED."),
        ({}, TASKS.format("FAILED"), "Job 7_1 is FAILED."),
    ):
        commands = head_node(tasks=tasks, accounts=accounts, log=RAISED)
        code, output = run(failing(statuses=WELL, commands=commands), "--job", "7")
        assert sentence in output.splitlines()[0]
        assert RAISED in output
        assert code == 1


def test_an_array_whose_tasks_completed_is_well(run: Run) -> None:
    done = {0: "COMPLETED", 1: "COMPLETED"}
    for accounts, sentence in (
        ("", "Of job 7, every task that Slurm lists is COMPLETED."),
        (TASKS.format("COMPLETED"), "Job 7 is COMPLETED."),
    ):
        answers = failing(statuses=WELL, commands=head_node(tasks=done, accounts=accounts))
        assert run(answers, "--job", "7") == (0, f"{sentence}\nNothing to diagnose.\n")


def test_only_failures_after_the_success_are_causes(run: Run) -> None:
    answers = failing(statuses=WELL, saved=SAVED, logs={"cloud-init-output": STEP}, commands=head_node())
    code, output = run(answers)
    now, _, earlier = output.partition(f"{FIXED}\n")
    assert STEP_TITLE not in now
    assert "Nothing to diagnose." in now
    assert earlier.startswith(f"1. {STEP_TITLE}")
    assert code == 0
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
    code, output = run(failing(statuses=foundations, saved=SAVED), *FORMER)
    assert output.startswith("There is no cluster in us-east-1.")
    assert output.index("a cluster that no longer exists") < output.index(STEP_TITLE)
    assert code == 1
    odd = dict.fromkeys(SAVED, "ERROR: something odd")
    failed = {"TrainingCluster-Network": "UPDATE_ROLLBACK_COMPLETE"}
    code, output = run(failing(statuses={**foundations, **failed}, saved=odd), *FORMER)
    assert "TrainingCluster-Network is UPDATE_ROLLBACK_COMPLETE." in output
    assert "ERROR: something odd" in output
    assert code == 1


def test_a_forgotten_job_is_diagnosed_by_its_log(run: Run) -> None:
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
        at = datetime.datetime.fromisoformat(f"2026-11-05T{submitted}+00:00")
        job = {"state": "NODE_FAIL", "submitted": int(at.timestamp())}
        _, output = run(
            failing(statuses=WELL, logs=lost, commands=head_node(job=job, log="step 1\n")), "--job", "7"
        )
        assert output.startswith(f"Job 7 is NODE_FAIL.\n{STATE}")
        assert ("Earlier than job 7" not in output) == is_current
