"""`trainctl logs`, and the watching of `trainctl submit --follow`."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ops.jobs.output import CHUNK_BYTES, Output
from ops.jobs.reasons import plain_reason
from tests.unit.ops.jobs_head_node import UNKNOWN_JOB, Call, PlayedCluster, job_line


def test_logs_are_shown_of_any_job(cluster: PlayedCluster, call: Call) -> None:
    cluster.says("squeue", job_line("FAILED", "None", "3:0"))
    cluster.has_log("30", "".join(f"{'x' * 90} {n}\n" for n in range(1000)))
    code, said, note = call("logs", "30", "--lines", "300")
    assert code == 0
    assert [line.split()[1] for line in said.splitlines()] == [str(n) for n in range(700, 1000)]
    assert note == "Job 30 ended: FAILED (exit code 3)\n"
    cluster.says("squeue", "", error=UNKNOWN_JOB, code=1)
    cluster.has_log("12", "old\n")
    assert call("logs", "12")[:2] == (0, "old\n")
    code, _, said = call("logs", "13")
    assert code == 1
    assert "Slurm does not know job 13, or has forgotten it, and /fsx/runs/job-13.log does not exist." in said
    cluster.says("squeue", job_line("RUNNING", "None"))
    cluster.has_log("30", "one\ntwo\n")
    told = json.loads(call("logs", "30", "--json", "--lines", "1")[1])
    assert (told["job"]["state"], told["output"], told["text"]) == (
        "RUNNING",
        "/fsx/runs/job-30.log",
        "two\n",
    )


def becomes(cluster: PlayedCluster, *looks: tuple[str, str]) -> None:
    """Set the answers of squeue, one a look, each with the growth of the log; the last one is repeated."""
    folder = cluster.shared.parent / "looks"
    folder.mkdir()
    log = cluster.has_log("30", "")
    for number, (said, written) in enumerate(looks):
        (folder / f"{number}.job").write_text(said)
        (folder / f"{number}.log").write_text(written)
    last = len(looks) - 1
    cluster.does(
        "squeue",
        f"cd {folder}; n=$(cat n 2>/dev/null || echo 0); echo $((n < {last} ? n + 1 : n)) >n\n"
        f'cat "$n.log" >>{log}; : >"$n.log"; say "$(cat "$n.job")"$\'\\n\'',
    )


def test_a_job_is_followed_through_its_restart(cluster: PlayedCluster, call: Call) -> None:
    running = job_line("RUNNING", "None")
    becomes(
        cluster,
        (job_line("PENDING", "Resources"), ""),
        (job_line("PENDING", "Resources"), ""),
        (job_line("CONFIGURING", "None"), ""),
        (running, "step 1\n"),
        (running, "ste"),
        (job_line("PENDING", "BeginTime"), "p 2\n"),
        (running, "start again\n"),
        (job_line("COMPLETED", "None"), "done é\n"),
    )
    code, said, notes = call("logs", "30", "--follow")
    assert (code, said) == (0, "step 1\nstep 2\nstart again\ndone é\n")
    assert notes.splitlines() == [
        "Job 30 waits, after 1 restart(s): no nodes are free for it yet",
        "Job 30 has its nodes, after 1 restart(s); they are starting",
        "Job 30 is RUNNING, after 1 restart(s)",
        f"Job 30 waits, after 1 restart(s): {plain_reason('BeginTime')}",
        "Job 30 is RUNNING, after 1 restart(s)",
        "Job 30 ended: COMPLETED",
    ]


def test_an_interrupt_does_not_end_the_job(
    cluster: PlayedCluster, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    becomes(cluster, (job_line("RUNNING", "None"), "a\n"))
    # Of this module alone: the head node is asked with pauses, too.
    monkeypatch.setattr("ops.jobs.follow.time", SimpleNamespace(sleep=interrupted))
    code, said, note = call("logs", "30", "--follow")
    assert (code, said) == (130, "a\n")
    assert "Job 30 continues. To end it: trainctl cancel 30" in note
    assert not cluster.called("scancel")


def test_only_many_lost_answers_end_the_watch(cluster: PlayedCluster, call: Call) -> None:
    states = cluster.shared.parent / "n"
    states.write_text("")
    cluster.has_log("30", "a\n")
    cluster.does(
        "squeue",
        f"echo >>{states}; case $(wc -l <{states}) in 2) echo 'no contact' >&2; exit 1;; esac\n"
        f"say ${job_line('COMPLETED')!r}",
    )
    code, said, notes = call("logs", "30", "--follow")
    assert (code, said) == (0, "a\n")
    assert "No answer, asking again: squeue: no contact" in notes
    cluster.does(
        "squeue",
        f"echo >>{states}; [ $(wc -l <{states}) -gt 4 ] && {{ echo 'no contact' >&2; exit 1; }}\n"
        f"say ${job_line()!r}",
    )
    code, _, notes = call("logs", "30", "--follow")
    assert (code, notes.splitlines()[-1]) == (1, "squeue: no contact")


def test_quiet_jobs_are_polled_less_often(
    cluster: PlayedCluster, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = list[float]()
    monkeypatch.setattr("ops.jobs.follow.POLL_S", 2.0)
    monkeypatch.setattr("ops.jobs.follow.time", SimpleNamespace(sleep=pauses.append))
    running = job_line("RUNNING", "None")
    quiet = [(running, "")] * 8
    becomes(cluster, (running, "a\n"), *quiet, (running, "b\n"), (job_line("COMPLETED", "None"), ""))
    assert call("logs", "30", "--follow")[:2] == (0, "a\nb\n")
    # Two commands find the job and its log's end.
    assert len(cluster.sent) <= len(quiet) + 3 + 2
    assert (sorted(pauses[:-1]), pauses[0], max(pauses), pauses[-1]) == (pauses[:-1], 2.0, 15.0, 2.0)


def test_a_long_output_is_followed_whole(cluster: PlayedCluster, call: Call) -> None:
    lines = "".join(f"{'x' * 90} {n}\n" for n in range(1000))
    becomes(cluster, (job_line("RUNNING", "None"), ""), (job_line("COMPLETED", "None"), lines))
    assert call("logs", "30", "--follow")[:2] == (0, lines)


def test_output_is_read_whole_and_anew(cluster: PlayedCluster) -> None:
    cluster.says("squeue", job_line("RUNNING", "None"))
    log = cluster.has_log("30", "a long beginning\n")
    output = Output("/fsx/runs/job-30.log", cluster.head_node)
    assert output.look("30").text == "a long beginning\n"
    log.write_text("anew\n")
    assert [output.look("30").text for _ in range(2)] == ["anew\n", ""]
    # Bytes that are no text come with another length than they have in the file.
    content = b"\xff\xfe" + "é".encode() * CHUNK_BYTES + b"end\n"
    log = cluster.has_log("30", content)
    output = Output("/fsx/runs/job-30.log", cluster.head_node)
    text = "".join(output.read_on())
    assert text.count("é") >= CHUNK_BYTES - 2
    assert text.endswith("end\n")
    with log.open("a") as file:
        file.write("more\n")
    assert list(output.read_on()) == ["more\n"]
    assert list(output.read_on()) == []
    log.write_text("anew\n")
    assert list(output.read_on()) == ["anew\n"]
