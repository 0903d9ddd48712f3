"""Slurm's jobs and nodes, from the head node's program to trainctl; reasons in plain words."""

import json
import random

import pytest

from ops.account.head_node import unpacked
from ops.jobs.lookup import find_job, read_jobs, read_nodes
from ops.jobs.reasons import plain_reason
from ops.jobs.slurm import QueuedJob, check_job_id
from ops.usage import UsageError
from tests.unit.ops.jobs_head_node import Call, PlayedCluster, job_line, slurm_answer, slurm_module

EVIL = "\x1b]0;pwned\x07\x1b[31m\x9broot\x0b"


def test_a_job_has_all_that_squeue_tells(cluster: PlayedCluster) -> None:
    cluster.says("squeue", job_line("PENDING", "BeginTime", output="/fsx/runs/%x-%j.log"))
    job = find_job("30", cluster.head_node)
    assert job
    assert (job.id, job.workload, job.state, job.reason) == ("30", "gpt2", "PENDING", "BeginTime")
    assert (job.nodes, job.restarts, job.output) == (2, 1, "/fsx/runs/train-30.log")
    assert (job.waits, job.has_ended) == (True, False)
    for state, code, ending in (
        ("COMPLETED", "0:0", "COMPLETED"),
        ("FAILED", "3:0", "FAILED (exit code 3)"),
        ("FAILED", "768", "FAILED (exit code 3)"),  # as Slurm 22.05 prints it
        ("FAILED", "0:9", "FAILED (signal 9)"),
        ("FAILED", "9", "FAILED (signal 9)"),
        ("TIMEOUT", "0:15", "TIMEOUT (its time limit is 1-00:00:00)"),
    ):
        cluster.says("squeue", job_line(state, code=code))
        job = find_job("30", cluster.head_node)
        assert job
        assert (job.has_ended, job.ending) == (True, ending)


def test_a_forged_name_shows_as_a_name(cluster: PlayedCluster, call: Call) -> None:
    forged = "x\n17|gpu|alice|RUNNING JobId=17 UserId=alice"
    # `say` takes every | and line end for a separator, so the name comes afterwards.
    text = job_line(id_="31", name="NAME", command="mine") + job_line(id_="40+0", name=EVIL, command="mine")
    lines = f'text=$(say ${text!r}; echo .); text=${{text%.}}; printf %s "${{text/NAME/${forged!r}}}"'
    cluster.does("squeue", lines)
    code, output, _ = call("jobs")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()[1:]] == ["31", "40+0"]
    assert forged.replace("\n", "?") in output
    assert not {"\x1b", "\x07", "\x9b"} & set(output)


def test_a_list_that_is_too_long_is_cut(cluster: PlayedCluster) -> None:
    noise = random.Random(1)
    named = [job_line(name=f"{noise.getrandbits(256):x}", command="mine") for _ in range(1000)]
    cluster.says("squeue", "".join(named))
    jobs = read_jobs(cluster.head_node)
    assert 100 < len(jobs.queue) < 1000
    assert jobs.notes == ("There are more jobs than Systems Manager returns at once.",)


def test_accounted_states_lose_their_details() -> None:
    line = "9|gpu|ann|CANCELLED by 1000|None|2|00:10:00|365-00:00:00|gpt2"
    said = json.loads(unpacked(slurm_answer("sacct", line)))
    job = QueuedJob.of(dict(zip(said["fields"], said["rows"][0], strict=True)))
    assert (job.id, job.state, job.workload, job.has_ended) == ("9", "CANCELLED", "gpt2", True)
    assert (job.time_limit, job.reason) == ("UNLIMITED", "")


def test_a_job_id_is_a_number_or_task() -> None:
    for id_ in ("1", "12", "12_3", "12+1"):
        assert check_job_id(id_) == id_
    for id_ in ("", "0", "-1", "gpt2", "1 2", "1;2", "12_", "--all"):
        with pytest.raises(UsageError, match="not a job id"):
            check_job_id(id_)


def test_a_reason_is_explained_or_passed_on() -> None:
    for reason, plain in (
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
        ("QOSGrpBillingMinutes", "submit it with a shorter --time"),
        ("InvalidQOS", "max_gpu_hours"),
        ("", "gives no reason"),
    ):
        assert plain in plain_reason(reason)
    said = plain_reason("Dependency", dependency="afterok:12(unfulfilled)")
    assert said == "another job has to end first (afterok:12(unfulfilled))"


SINFO = """\
gpu*|up|mixed|1|gpu-dy-p4d-1|Unknown|none
gpu*|up|idle~|5|gpu-dy-p4d-[2-6]|Unknown|none
gpu*|up|drained~|1|gpu-dy-p4d-7|1790000000|gpu lost: XID 79
gpu*|up|down#|1|gpu-dy-p4d-8|1790000001|(Code:InsufficientInstanceCapacity)
prep|inact|idle|1|prep-st-cpu-1|Unknown|none
both|up|drained~|1|gpu-dy-p4d-7|1790000000|gpu lost: XID 79
"""


def test_partitions_count_nodes_and_name_unavailable_ones(cluster: PlayedCluster) -> None:
    cluster.says("sinfo", SINFO)
    (gpu, prep, both), (drained, down) = read_nodes(cluster.head_node)
    assert (gpu.name, gpu.is_default, gpu.size) == ("gpu", True, 8)
    assert {state: n for state, n in gpu.nodes.items() if n} == {"allocated": 1, "powered_down": 6, "down": 1}
    assert (prep.is_default, prep.availability, prep.nodes["idle"], both.size) == (False, "inact", 1, 1)
    assert (drained.names, drained.state, drained.reason) == ("gpu-dy-p4d-7", "drained~", "gpu lost: XID 79")
    assert (down.names, down.since[:4]) == ("gpu-dy-p4d-8", "2026")


def test_a_state_of_each_of_1250_nodes_fits(cluster: PlayedCluster) -> None:
    noise = random.Random(1)
    reasons = (f"gpu lost: XID 79 on GPU {noise.randrange(8)}, PCI:0000:{i % 256:02x}:1c" for i in range(250))
    out = (
        f"gpu*|up|drained|1|gpu-dy-p5-{5 * i}|{1790000000 + noise.randrange(10**6)}|{each}\n"
        for i, each in enumerate(reasons)
    )
    cluster.says("sinfo", "".join(out) + "gpu*|up|allocated|1000|gpu-dy-p5-[1-1250]|Unknown|none\n")
    (gpu,), unavailable = read_nodes(cluster.head_node)
    assert (gpu.size, len(unavailable)) == (1250, 250)


def test_every_word_of_sinfo_has_one_state() -> None:
    state_of = slurm_module().state_of
    for words, state in (
        ("allocated allocated+ mixed mixed+ completing allocated@ allocated$ allocated-", "allocated"),
        ("idle planned reserved idle- idle@", "idle"),
        ("idle# mixed# allocated# powering_up", "powering_up"),
        ("idle% idle! allocated! mixed% power_down powering_down", "powering_down"),
        ("down down* down# down% drained draining draining@ fail inval maint idle* unknown* new", "down"),
        ("idle~ down~ drained~ powered_down", "powered_down"),
    ):
        assert {word: state_of(word) for word in words.split()} == dict.fromkeys(words.split(), state)
