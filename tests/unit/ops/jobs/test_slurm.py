"""Parsing of Slurm's output: jobs, nodes, and reasons in plain words."""

import importlib.util
import sys

import pytest

from ops.account.head_node import MAX_OUTPUT_BYTES
from ops.jobs.nodes import parse_sinfo, state_of
from ops.jobs.reasons import plain_reason
from ops.jobs.slurm import check_job_id, parse_accounts, parse_job, parse_queue, whole_lines
from ops.usage import OpsError, UsageError
from training_cluster.paths import ASSETS

# As Slurm 22.05 printed it, with other names.
JOB = (
    "JobId=30 JobName=train UserId=ubuntu(1000) Priority=4294 JobState={state} Reason={reason} "
    "Dependency=(null) Requeue=1 Restarts=1 ExitCode={code} RunTime=00:00:00 TimeLimit=1-00:00:00 "
    "Partition=gpu NodeList= NumNodes=2 NumCPUs=1 ReqB:S:C:T=0:0:*:* "
    "Command=/fsx/training/job.slurm gpt2 --note JobState=FAILED WorkDir=/home/ubuntu "
    "StdErr=/fsx/runs/job-30.log StdIn=/dev/null StdOut={output} Power= "
)


def job_text(
    state: str = "PENDING", reason: str = "BeginTime", code: str = "0:0", output: str = "/fsx/runs/job-30.log"
) -> str:
    return JOB.format(state=state, reason=reason, code=code, output=output)


def test_a_job_is_read_and_its_arguments_are_not_taken_for_its_state() -> None:
    job = parse_job(job_text())
    assert (job.id, job.workload, job.state, job.reason) == ("30", "gpt2", "PENDING", "BeginTime")
    assert (job.nodes, job.restarts, job.output) == (2, 1, "/fsx/runs/job-30.log")
    assert job.waits
    assert not job.has_ended


def test_filename_patterns_that_slurm_leaves_are_filled_in() -> None:
    assert parse_job(job_text(output="/fsx/runs/%x-%j.log")).output == "/fsx/runs/train-30.log"


@pytest.mark.parametrize(
    ("state", "code", "ending"),
    [
        ("COMPLETED", "0:0", "COMPLETED"),
        ("FAILED", "3:0", "FAILED (exit code 3)"),
        ("FAILED", "0:9", "FAILED (signal 9)"),
        ("TIMEOUT", "0:15", "TIMEOUT (its time limit is 1-00:00:00)"),
        ("NODE_FAIL", "0:0", "NODE_FAIL"),
    ],
)
def test_an_ended_job_says_how_it_ended(state: str, code: str, ending: str) -> None:
    job = parse_job(job_text(state, "None", code))
    assert job.has_ended
    assert job.ending == ending


def test_the_queue_is_read_whatever_a_name_holds() -> None:
    (waits, runs), unread = parse_queue(
        [
            "32|ubuntu|gpu|PENDING|ReqNodeNotAvail, UnavailableNodes:gpu-dy-p4d-[1-2]|2|0:00|UNLIMITED|(null)"
            "|a|b|/home/ubuntu/own.sh a|b",
            "31|root|gpu|RUNNING|None|1|1-02:03:04|2-00:00:00|(null)|train|/fsx/training/job.slurm gpt2 -x 1",
        ]
    )
    assert unread == 0
    assert (runs.workload, runs.reason, runs.nodes, runs.elapsed) == ("gpt2", "", 1, "1-02:03:04")
    assert (waits.id, waits.user, waits.state, waits.nodes) == ("32", "ubuntu", "PENDING", 2)
    assert (
        plain_reason(waits.reason) == "nodes that it needs are down, drained or reserved (gpu-dy-p4d-[1-2])"
    )


def test_jobs_that_only_accounting_knows_are_read() -> None:
    (job,), _ = parse_accounts(["9|ubuntu|gpu|CANCELLED by 1000|None|2|00:10:00|UNLIMITED|gpt2"])
    assert (job.id, job.state, job.workload, job.has_ended) == ("9", "CANCELLED", "gpt2", True)


def test_a_line_that_was_cut_off_is_not_read_as_a_job() -> None:
    line = "31|root|gpu|RUNNING|None|1|0:01|UNLIMITED|(null)|train|/fsx/training/job.slurm gpt2\n"
    cut = (line * 400)[:MAX_OUTPUT_BYTES]
    lines, is_cut = whole_lines(cut)
    assert is_cut
    assert len(parse_queue(lines)[0]) == MAX_OUTPUT_BYTES // len(line)
    assert whole_lines(line) == ([line.strip()], False)


@pytest.mark.parametrize(
    "text", ["", "slurm_load_jobs: nonsense", "JobId=3 JobName=a", job_text(code="a:b"), "\nJobId=3"]
)
def test_what_is_not_understood_is_an_error_and_no_guess(text: str) -> None:
    with pytest.raises(OpsError, match="cannot parse"):
        parse_job(text)


def test_a_line_that_is_no_job_hides_no_job_and_is_counted() -> None:
    line = "31|root|gpu|RUNNING|None|1|0:01|UNLIMITED|(null)|{}|/fsx/training/job.slurm {}"
    named = line.format("two\nlines", "gpt2\n--note=x").split("\n")
    jobs, unread = parse_queue(["31|root", *named, "x|root|gpu|RUNNING|None|1|0:01|UNLIMITED|(null)|a|b"])
    assert [(job.id, job.workload) for job in jobs] == [("31", "two")]
    assert unread == 4
    jobs, unread = parse_accounts(["9|ubuntu|gpu|FAILED|None|2|00:10:00|UNLIMITED|a", "b", "|||||||||"])
    assert ([job.id for job in jobs], unread) == (["9"], 2)


def test_parts_of_a_heterogeneous_job_and_waiting_arrays_are_jobs() -> None:
    line = "{}|root|gpu|RUNNING|None|1|0:01|UNLIMITED|(null)|a|b"
    jobs, _ = parse_queue([line.format(id_) for id_ in ("30094+0", "30094+1", "30095_[3-9%2]")])
    assert [job.number for job in jobs] == [30094, 30094, 30095]


def test_a_job_whose_name_has_a_lines_end_is_read() -> None:
    job = parse_job(job_text().replace("JobName=train", "JobName=tr\nain") + "\n" + job_text("FAILED"))
    assert (job.id, job.state, job.nodes) == ("30", "PENDING", 2)


def test_nothing_of_a_job_or_node_is_obeyed_by_the_terminal() -> None:
    evil = "\x1b]0;pwned\x07\x1b[31m\x9broot\x0b"
    queue, _ = parse_queue([f"31|{evil}|gpu|RUNNING|{evil}|1|0:01|UNLIMITED|{evil}|{evil}|/x"])
    accounts, _ = parse_accounts([f"9|ubuntu|gpu|FAILED|None|2|00:10:00|UNLIMITED|{evil}"])
    job = parse_job(job_text(reason=evil))
    _, unavailable = parse_sinfo(f"gpu*|up|drained|1|gpu-dy-p4d-5|2026-11-22T07:04:40|{evil}\n")
    shown = (queue[0].user, queue[0].reason, queue[0].dependency, queue[0].workload, accounts[0].workload)
    assert {*shown, job.reason, unavailable[0].reason} == {"?]0;pwned??[31m?root?", "?]0;pwned??[31m?root"}


def test_nodes_that_are_not_understood_are_an_error_and_no_guess() -> None:
    with pytest.raises(OpsError, match="cannot parse: train up"):
        parse_sinfo("train up")


@pytest.mark.parametrize("id_", ["1", "12", "12_3", "12+1"])
def test_a_job_id_is_a_number_or_an_arrays_task(id_: str) -> None:
    assert check_job_id(id_) == id_


@pytest.mark.parametrize("id_", ["", "0", "-1", "gpt2", "1 2", "1;2", "12_", "--all"])
def test_nothing_else_is_a_job_id(id_: str) -> None:
    with pytest.raises(UsageError, match="not a job id"):
        check_job_id(id_)


@pytest.mark.parametrize(
    ("reason", "plain"),
    [
        ("Resources", "no nodes are free"),
        ("PartitionInactive", "is the compute fleet stopped?"),
        ("launch_failed_requeued_held", "scontrol release"),
        ("launch failed requeued held", "scontrol release"),
        ("launch_failure_limit_exceeded_requeued_held", "scontrol release"),
        (
            "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
            "down",
        ),
        ("AssocGrpNodeLimit", "AssocGrpNodeLimit"),
        ("", "gives no reason"),
    ],
)
def test_a_reason_is_said_in_plain_words_or_as_slurm_says_it(reason: str, plain: str) -> None:
    assert plain in plain_reason(reason)


def test_a_dependency_is_named() -> None:
    said = plain_reason("Dependency", dependency="afterok:12(unfulfilled)")
    assert said == "another job has to end first (afterok:12(unfulfilled))"


SINFO = """\
gpu*|up|mixed|1|gpu-dy-p4d-1|Unknown|none
gpu*|up|idle~|5|gpu-dy-p4d-[2-6]|Unknown|none
gpu*|up|drained~|1|gpu-dy-p4d-7|2026-11-22T07:04:40|gpu lost: XID 79 | see log
gpu*|up|down#|1|gpu-dy-p4d-8|2026-11-22T07:04:41|(Code:InsufficientInstanceCapacity)
prep|inact|idle|1|prep-st-cpu-1|Unknown|none
both|up|drained~|1|gpu-dy-p4d-7|2026-11-22T07:04:40|gpu lost: XID 79 | see log
"""


def test_partitions_count_their_nodes_by_what_they_do() -> None:
    (gpu, prep, both), _ = parse_sinfo(SINFO)
    assert (gpu.name, gpu.is_default, gpu.size) == ("gpu", True, 8)
    assert {state: n for state, n in gpu.nodes.items() if n} == {"allocated": 1, "powered_down": 6, "down": 1}
    assert (prep.is_default, prep.availability, prep.nodes["idle"]) == (False, "inact", 1)
    assert both.size == 1


def test_nodes_that_take_no_job_come_once_with_the_whole_reason() -> None:
    _, (drained, down) = parse_sinfo(SINFO)
    assert (drained.names, drained.state, drained.reason) == (
        "gpu-dy-p4d-7",
        "drained~",
        "gpu lost: XID 79 | see log",
    )
    assert (down.names, down.since) == ("gpu-dy-p4d-8", "2026-11-22T07:04:41")


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> object:
    """The program of the head node that counts nodes for the dashboard."""
    folder = ASSETS / "bootstrap" / "metrics"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("slurm_nodes_of_a_test", folder / "slurm_nodes.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in [path.stem for path in folder.glob("*.py")]:
        sys.modules.pop(name, None)
    return module


@pytest.mark.parametrize(
    "word",
    "idle idle~ idle# idle% idle! idle* mixed mixed# mixed- allocated allocated+ completing planned reserved "
    "down down* down~ down# drained drained~ draining fail maint powered_down powering_up powering_down "
    "power_down unknown".split(),
)
def test_a_node_counts_here_as_it_does_on_the_dashboard(word: str, dashboard: object) -> None:
    counted = dashboard.state_of(word)  # type: ignore[attr-defined]
    assert state_of(word) == (counted or "powered_down")
