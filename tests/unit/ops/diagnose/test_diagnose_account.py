"""trainctl diagnose on an account: what it asks, and that no source hides another."""

import pytest

from ops.diagnose.account import gather
from tests.unit.ops.diagnose.diagnose_account import HEAD, ask, failing, head_node
from tests.unit.ops.fake_account import Account, Refused


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.account.head_node.time.sleep", lambda _seconds: None)


STEP = "10:12:43 bootstrap: step 20-install-python failed after 3 s: no wheel"


def test_the_latest_events_logs_and_console_are_read() -> None:
    gathered, found = ask(failing())
    assert [cause.id for cause in found.causes] == ["head-node-timeout"]
    assert (found.causes[0].evidence[0].file, found.unread) == ("training-stack-events.txt", {})
    stacks = next(text.stream.read().decode() for text in gathered.texts() if text.name == "stacks.txt")
    assert "TrainingCluster-Storage  CREATE_COMPLETE  termination protection on" in stacks
    assert "SomebodyElses" not in stacks
    saved = {
        "2026-11-05T09-00-00-CREATE_FAILED/cfn-init.log": "CUDA out of memory, of a failure before",
        "2026-11-05T10-10-00-CREATE_FAILED/cfn-init.log": STEP,
    }
    _, found = ask(failing(saved=saved))
    assert [cause.id for cause in found.causes] == ["bootstrap-step", "head-node-timeout"]
    assert found.causes[0].evidence[0].file.startswith("s3/logs/training/2026-11-05T10-10-00")
    logs = {
        "clustermgtd": "Setting cluster into protected mode due to failures detected in node provisioning",
        "cloud-init-output": STEP,
        "dcv-agent": "CUDA out of memory, in a log that tells nothing of this",
    }
    _, found = ask(failing(logs=logs, console="This AMI was not baked by ParallelCluster."))
    assert {cause.id for cause in found.causes} == {
        "ami-foreign",
        "bootstrap-step",
        "fleet-protected",
        "head-node-timeout",
    }


def test_slurm_reasons_and_job_logs_are_read() -> None:
    log = "x\n" * 70_000 + "CUDA out of memory. Tried to allocate 2.00 GiB\n"

    on_head_node = head_node(job={"state": "FAILED", "code": "1:0"}, log=log, path="/home/ubuntu/train-7.log")

    def answer(script: str) -> str:
        reasons = "REASON NODELIST\ntraining-cluster: nvidia-smi lists 7 of 8 GPUs      gpu-dy-p4d-2\n"
        return reasons if "-R" in script.split() else on_head_node(script)

    before = {"slurm_resume": "An error occurred (InsufficientInstanceCapacity) when calling the CreateFleet"}
    account = failing(reason="Resource creation cancelled", commands=answer, logs=before)
    _, found = ask(account, job="7")
    assert [cause.id for cause in found.causes] == ["cuda-oom", "no-capacity", "node-unhealthy"]
    assert found.causes[0].evidence[0].file == "job-7.log"


def test_a_source_that_refuses_hides_no_other() -> None:
    answers = failing(saved={"2026-11-05T10-10-00-CREATE_FAILED/cfn-init.log": STEP})
    for operation in ("DescribeLogGroups", "GetConsoleOutput", "DescribeStackEvents"):
        answers[operation] = Refused("AccessDeniedException", f"may not {operation}")
    answers["SendCommand"] = Refused("InvalidInstanceId", "")
    _, found = ask(answers)
    assert [cause.id for cause in found.causes] == ["bootstrap-step"]
    assert set(found.unread) == {"stacks", "console of the head node", "CloudWatch logs", "Slurm"}
    assert "may not DescribeLogGroups" in found.unread["CloudWatch logs"]
    assert HEAD in found.unread["Slurm"]
    assert all("\n" not in why for why in found.unread.values())


def test_an_unknown_cluster_is_named_with_existing_ones() -> None:
    _, found = ask(failing(), cluster="mine")
    assert "There is no cluster mine in us-east-1" in found.state.sentences[0]
    assert "training" in found.state.sentences[0]


def test_nothing_is_asked_that_changes_anything() -> None:
    account = Account(failing(saved={"a/cfn-init.log": STEP}, logs={"clustermgtd": "x"}))
    gather("training", account.client, job=None, progress=lambda _line: None)
    assert {name for name in account.asked if not name.startswith(("Describe", "Get", "List"))} == {
        "SendCommand"
    }
