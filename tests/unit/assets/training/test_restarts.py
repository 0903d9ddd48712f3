"""restarts.sh: what a job does when its training has ended, with Slurm's programs in functions."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import bash
from tests.unit.assets.training.waiting import LONG_S
from training_cluster.paths import TRAINING

JOB = f"""\
log() {{ printf '%s\\n' "$*"; }}
die() {{ log "$1"; exit 1; }}
tell() {{ :; }}
report() {{ log "the report"; }}
find_python() {{ command -v python3; }}
scontrol() {{ if [[ $2 == hostlist ]]; then echo "$3"; else log "scontrol $*"; fi; }}
squeue() {{ :; }}
training=/fsx/training job_script=4 workload=tiny run=mine MAX_RESTARTS=${{MAX_RESTARTS:-3}}
SLURM_JOB_NUM_NODES=2 SLURM_JOB_ID=7 SLURMD_NODENAME=n1
source "{TRAINING}/restarts.sh"
well=(n1 n2) wanted=2 least=2 NODES=n1,n2
set_size
start_step=4 job_step=4
"""
TAKEN = "n2 (training-cluster: EC2 takes it: spot terminate at 3)"
AS_ASKED = "as Slurm asked (time limit, scancel or requeue)"


class Job:
    """Job 7 in its first start, which began at step 4."""

    def __init__(self, folder: Path) -> None:
        self.run_dir, self.checkpoints = folder / "run", folder / "checkpoints"
        for each in (self.run_dir, self.checkpoints):
            each.mkdir()
        self.save(4)
        (self.checkpoints / "trainers-own").touch()

    def save(self, step: int) -> None:
        (self.checkpoints / "latest_step").write_text(f"{step}\n")

    def note(self, *starts: tuple[int, str]) -> None:
        """Write earlier starts: the step at which each began, and who ended it, if job.slurm saw its end."""
        for name in ("starts", "ends"):
            (self.run_dir / name).write_text("")
        for count, (step, by) in enumerate(starts):
            self.add("starts", f"{count} {step} 2026-11-22T03:00:00Z n[1-2] 7 {count}")
            if by:
                self.add("ends", f"7 {count} 2026-11-22T03:10:00Z 1 {by}")

    def add(self, name: str, line: str) -> None:
        """Add a line to a file of the run."""
        with (self.run_dir / name).open("a") as file:
            file.write(f"{line}\n")

    def run(self, line: str, **settings: str) -> tuple[int, bool, str]:
        """Return the exit code of a line of job.slurm, whether it queued the job again, and its output."""
        folders = {"RUN_DIR": str(self.run_dir), "CHECKPOINT_DIR": str(self.checkpoints)}
        ended = bash(f"{JOB}{line}", **folders, **settings)
        assert not ended.stderr
        return ended.returncode, "\nscontrol requeue 7" in ended.stdout, ended.stdout


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_starts_since_the_newest_checkpoint_count(job: Job) -> None:
    for starts, counts in (
        ([(4, "ranks"), (4, "ranks")], "2 0"),
        ([(4, ""), (4, "slurm"), (4, "ranks"), (4, "")], "1 3"),
        ([(2, "ranks"), (3, "ranks")], "0 0"),  # a checkpoint since
        ([(0, "ranks")] * 9 + [(4, "ranks")], "1 0"),  # a checkpoint between
        ([(8, "ranks"), (4, "ranks")], "2 0"),  # a damaged checkpoint
    ):
        job.note(*starts)
        job.add("starts", "0 4 2026-11-22T03:00:00Z n[1-2] 6\n9 \0 torn")
        checked = job.run(
            "check_checkpoints() { log checked; }; check_restart; log $failures $interruptions $START_STEP"
        )
        assert checked[2] == f"checked\n{counts} 4\n"


@pytest.mark.parametrize(
    ("by", "count", "allowed", "why"),
    [
        ("ranks", "restart", 3, "MAX_RESTARTS is 3, and 4 starts failed without a checkpoint after step 4"),
        ("slurm", "interruption", 10, "Slurm or EC2 ended 11 starts before a checkpoint after step 4"),
    ],
)
def test_starts_without_a_checkpoint_have_a_limit(
    job: Job, by: str, count: str, allowed: int, why: str
) -> None:
    again = f"check_restart; repeats=yes; restart_or_end 1 'n2 failed' {by}"
    job.note(*[(4, by)] * (allowed - 1))
    code, is_queued, output = job.run(again)
    assert (code, is_queued, f"n2 failed; continues from step 4, {count} {allowed}" in output) == (
        1,
        True,
        True,
    )
    job.note(*[(4, by)] * allowed)
    code, is_queued, output = job.run(again)
    assert (code, is_queued, f"n2 failed; not started again, since {why}\n" in output) == (1, False, True)
    job.note(*[(4, by)] * (allowed + 1))
    code, _, output = job.run("check_restart; log started", SLURM_RESTART_COUNT="20")
    assert (code, f"not started again, since {why}\n" in output) == (1, True)
    job.save(9)


def test_a_day_has_a_limit_of_failures(job: Job) -> None:
    today = datetime.now(UTC).strftime("%FT%TZ")
    for more, ended in ((24, "2026-01-01T00:00:00Z"), (1, today)):
        (job.run_dir / "ends").write_text(f"7 0 {ended} 1 ranks\n" * more + f"7 0 {today} 1 ranks\n" * 24)
        job.save(9)
        code, _, output = job.run("restart_or_end 1 failed ranks")
        assert code == (more == 1)
    assert "not started again, since more than 24 starts failed in a day" in output


def test_failed_ranks_repeat_once_on_their_nodes(job: Job) -> None:
    again = "restart_or_end 1 failed ranks"
    code, is_queued, output = job.run(f"{again}; check_restart; {again}")
    assert "restart 1 of 3 without a new checkpoint, on the same nodes\n" in output
    assert (code, is_queued) == (1, True), "prologs check the nodes of the next start"
    job.save(9)
    code, is_queued, output = job.run(f"repeats=yes; {again}")
    assert (code, is_queued, "step 9, on the same nodes\n" in output) == (0, False, True)


def test_a_later_local_step_keeps_the_nodes(job: Job) -> None:
    """The nodes' own checkpoints are lost if the job is queued again."""
    again, local_step = "restart_or_end 1 failed ranks", job.run_dir / "local_step"
    code, is_queued, output = job.run(f"{again}; echo 8 >{local_step}; {again}; {again}")
    assert (code, is_queued, output.count("on the same nodes\n")) == (1, True, 2)
    code, is_queued, _ = job.run(f"NNODES=2 repeats=yes; note_start 2>/dev/null; {again}")
    assert (code, is_queued) == (1, True), "the step of another start says nothing"


@pytest.mark.parametrize("folder", ["RUN_DIR", "CHECKPOINT_DIR"])
def test_a_restart_waits_for_space(job: Job, folder: str) -> None:
    """Or ends with a sentence; a rank's own is on the full disk."""
    full = "dd: error writing '.space': No space left on device"
    disk = f"""\
is_free() {{ [[ -f $RUN_DIR/freed && ! -d $CHECKPOINT_DIR/.step-000009.7-0.partial ]]; }}
dd() {{ is_free || [[ $2 != of=${{{folder}}}/.space ]] || {{ echo "{full}" >&2; return 1; }}; }}
sleep() {{ [[ ! -v slept ]] || touch "$RUN_DIR/freed"; SECONDS=9999 slept=yes; }} # the wall clock is set
"""
    (job.checkpoints / ".step-000009.7-0.partial").mkdir()
    code, is_queued, output = job.run(f"{disk}check_restart; log counted", SPACE_WAIT_S="9")
    assert (code, is_queued) == (0, False)
    path = job.run_dir if folder == "RUN_DIR" else job.checkpoints
    said = f"{path} takes no files (error writing '.space': No space left on device)"
    assert output == f"{said}: waiting for space, at most 9 s\nthere is space again\ncounted\n"
    (job.run_dir / "freed").unlink()
    code, is_queued, output = job.run(f"{disk}check_restart; log counted", SPACE_WAIT_S="0")
    assert (code, is_queued) == (1, False)
    assert f"{said}; not started again, since no space came within 0 s (SPACE_WAIT_S): make some\n" in output


def test_a_restart_waits_for_a_checkpoints_space(job: Job) -> None:
    """A start that cannot save would end at its first save, and the next one, too."""
    (job.checkpoints / "step-000004").mkdir()
    (job.checkpoints / "step-000004" / "model").write_bytes(b"1" * (8 << 20))
    for free_kib, waits in ((3 << 10, True), (8 << 10, True), (9 << 10, False)):
        disk = f"kib={free_kib}; df() {{ printf 'Avail\\n%s\\n' $kib; }}; sleep() {{ kib=99999; }}"
        output = job.run(f"{disk}; await_space; log counted")[2]
        said = f"{job.checkpoints} has {free_kib >> 10} MiB free, and another checkpoint needs 9 MiB"
        waited = f"{said}: waiting for space, at most 3600 s\nthere is space again\n"
        assert output == f"{waited * waits}counted\n"
    assert not list(job.checkpoints.glob(".*"))


def test_a_disk_full_since_then_delays(job: Job) -> None:
    free = 'await_space() { ((waits++ == 0)) || rm "$RUN_DIR/starts"; }'
    full = f'ln -s /dev/full "$RUN_DIR/starts"; waits=0; {free}'
    assert job.run(f"{full}; NNODES=2; note_start 2>/dev/null")[0] == 0
    assert (job.run_dir / "starts").read_text().startswith("0 4 ")


def test_a_finished_run_is_complete_whatever_follows(job: Job) -> None:
    assert job.run("had_finished 137 || log no")[2] == "no\n"
    (job.run_dir / "outcome").write_text("finished\n")
    said = job.run("had_finished 137; lost='n2 (down)'; had_finished 1")[2].splitlines()
    assert said == [
        "the training had finished before a rank failed (exit code 137)",
        "the training had finished before these nodes were lost: n2 (down)",
    ]


def test_a_silent_node_delays_spares_little(job: Job, tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/bash\nprintf 'n1 \\nn3 \\n'\n")
    srun.chmod(0o755)
    read = 'read() { [[ $2 != -t ]] || waits="$3"; builtin read "$@"; }'
    settings = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for wanted, least, most in ((2, 0, 20), (3, 55, 75)):
        line = f"{read}; wanted={wanted}; answering n1 n2 n3; echo ${{well[*]}} $waits"
        n1, n3, seconds = job.run(line, **settings)[2].split()
        assert (n1, n3) == ("n1", "n3")
        assert least < float(seconds) <= most


def test_an_unhealthy_node_is_left_out(job: Job, tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/bash\n((${!#})) && printf "n1 \\nn2 GPU 3 fell off the bus\\n"\n')
    srun.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    output = job.run("starts_here=1; answering n1 n2; echo ${well[*]}", PATH=path)[2]
    assert output == "n2 is left out: GPU 3 fell off the bus\nn1\n"


def test_ranks_that_do_not_end_occupy_nodes(tmp_path: Path) -> None:
    (tmp_path / "sleep").write_text("#!/bin/sh\n")
    (tmp_path / "sleep").chmod(0o755)
    node = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1"}
    answer = ["bash", str(TRAINING / "nodes.sh"), "answer", "1"]
    with subprocess.Popen(["sleep", "60"], env=os.environ | node | {"RANK": "0"}) as rank:
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        busy, other = (
            subprocess.run(
                answer, env=os.environ | node | path | more, capture_output=True, text=True, check=True
            )
            for more in ({}, {"SLURMD_NODENAME": "n2"})
        )
        rank.kill()
    assert (busy.stdout, other.stdout) == ("n1 ranks of the last start have not ended (1)\n", "n2 \n")


def test_a_node_that_answers_renews_its_sign(tmp_path: Path) -> None:
    """Its file system is slow, so the other nodes would end their ranks (launch.sh), and ask it, too."""
    asked, sign = tmp_path / "asked", tmp_path / "sign"
    sign.write_text("7\n")
    for name, text in (
        ("sleep", ""),
        ("squeue", f"if [[ -e {asked} ]]; then echo 1; else echo 0; fi"),
        ("srun", f"touch {asked}"),
        ("scontrol", f'[[ $2 != hostnames ]] || printf "n1\\nn2\\n"; [[ $1 != requeue ]] || rm {sign}'),
    ):
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    node = {"SLURMD_NODENAME": "n2", "SCRIPT_NODE": "n1", "SIGN": str(sign), "WATCH_S": "6", "THIS_JOB": "7"}
    node |= {"SLURM_STEP_NODELIST": "n[1-2]", "RUN_DIR": str(tmp_path)}
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    watch = ["bash", str(TRAINING / "nodes.sh"), "watch"]
    subprocess.run(watch, env=os.environ | node | path, check=True, timeout=LONG_S)
    assert sign.read_text().startswith("n2 asked at ")


def test_a_step_names_its_nodes_briefly(job: Job) -> None:
    fakes = "scontrol() { [[ $3 == n1,*,n1250 ]] && echo n[1-1250]; }; address_of() { echo $1; }; "
    use = "NPROC_PER_NODE=8; use_nodes n{1..1250}; step_on n{1..1250}; echo $STEP_OPTIONS ${each_node[-1]}"
    assert job.run(fakes + use)[2] == "--nodes=1250 --nodelist=n[1-1250] --nodelist=n[1-1250]\n"


def test_eight_nodes_of_all_racks_watch(job: Job) -> None:
    fakes = "clock() { false; }; step_on() { echo $*; exit; }; well=(n{1..512}); SLURM_JOB_NUM_NODES=512"
    assert job.run(f"{fakes}; start_lifeline")[2] == "n64 n128 n192 n256 n320 n384 n448 n512\n"


def test_a_suspect_node_gives_way_to_spares(job: Job) -> None:
    for node in ("n1", "n3"):
        (job.run_dir / f"suspect-7.{node}").write_text(f"step 6: {node} got other bits\n")
    (job.run_dir / "suspect-8.n2").write_text("another job's\n")
    slurm = "members() { all=(n1 n2 n3); }; answering() { well=(n1 n2 n3); }; "
    assert job.run(f"{slurm}choose_nodes; echo $size ${{well[*]}}; lost_nodes")[2] == (
        "n1 is left out: step 6: n1 got other bits\n2 n2 n3\nn1\n"
    )
    assert job.run(f"{slurm}wanted=3 least=3; choose_nodes; echo $size ${{well[*]}}")[2] == "3 n1 n2 n3\n"
    said = job.run("end_of_training 0")[2]
    assert said == "sentinel: step 6: n1 got other bits\nsentinel: step 6: n3 got other bits\ndone\n"


def test_max_restarts_0_ends_a_job(job: Job) -> None:
    job.note((2, ""))
    code, _, output = job.run("check_restart", MAX_RESTARTS="0", SLURM_RESTART_COUNT="1")
    assert (code, "not started again, since MAX_RESTARTS is 0" in output) == (1, True)


def test_the_watch_gets_the_runs_folder(job: Job) -> None:
    watch = f'source "{TRAINING}/hangs.sh"; find_python() {{ echo echo; }}; watch_for_hangs 5 7.5; wait'
    output = job.run(watch, HANG_TIMEOUT_S="9", LAUNCHER="srun")[2]
    assert output.endswith(f"trainkit.run.heartbeat {job.run_dir} 5 7.5\n")


def test_an_end_names_who_ended_it(job: Job) -> None:
    for files, line, by in (
        ((), "note_end 1", "ranks"),  # a dead rank
        ((), "told=yes; note_end 1", "slurm"),  # scancel, or a lost node
        ((), "note_end 143", "slurm"),  # a time limit
        (("failed",), "note_end 143", "ranks"),  # a dead rank, and the others were asked
        (("failed",), "lost=n2; note_end 1", "slurm"),
    ):
        for name in files:
            (job.run_dir / name).touch()
        job.run(line)
        assert (job.run_dir / "ends").read_text().split()[-1] == by, (files, line)


def test_a_node_without_steps_counts_no_start(job: Job) -> None:
    reach = "members() { all=(n1 n2); }; answering() { well=(n1); }; reach_nodes"
    code, is_queued, output = job.run(f"{reach}; note_start")
    assert "other jobs may take its nodes meanwhile; with SPARES=1 it would keep them\n" in output
    assert "1 nodes of the job took a step, and 2 are needed, without n2; queued again\n" in output
    assert (code, is_queued, (job.run_dir / "starts").exists()) == (1, True, False)
    code, is_queued, output = job.run(reach, SLURM_RESTART_COUNT="10")
    never = "not started again, since no training has begun in 10 restarts"
    assert (code, is_queued, never in output) == (1, False, True)


def test_an_inherited_array_names_no_job(job: Job) -> None:
    """A job that a task of another array submitted inherits the variables of that array."""
    for array, name in (("7", "7_3"), ("5", "7"), ("", "7")):
        output = job.run("repeats=yes; end_of_training 1", SLURM_ARRAY_JOB_ID=array, SLURM_ARRAY_TASK_ID="3")[
            2
        ]
        assert f"\nscontrol requeue {name}\n" in output


def test_a_time_limit_without_checkpoint_ends_the_job(job: Job) -> None:
    limit = "squeue() { echo RUNNING 1:59; }; end_of_training 143"
    code, is_queued, output = job.run(limit, REQUEUE_AT_TIME_LIMIT="1")
    assert "not started again, since no checkpoint was written in that time, after step 4" in output
    assert (code, is_queued) == (1, False)
    job.save(9)
    code, is_queued, output = job.run(limit, REQUEUE_AT_TIME_LIMIT="1")
    assert (is_queued, "continues from step 9; queued again\n" in output) == (True, True)


def test_a_notice_may_precede_the_first_step(job: Job) -> None:
    """Ranks that import torch do not yet save at SIGTERM: neither the data nor the code is at fault."""
    code, is_queued, output = job.run(f"size=0; lost={TAKEN!r}; end_of_training 143")
    assert f"{TAKEN}; continues from step 4, interruption 1 of 10" in output
    assert (code, is_queued) == (143, True)


def test_a_cancelled_job_is_not_queued_again(job: Job) -> None:
    """Slurm takes back a cancelled job that still saves (_job_requeue_op)."""
    job.save(9)
    cancelled = "tell() { told=yes; }; end_of_training 1; note_start"
    for start in (cancelled, f"repeats=yes start_step=9; {cancelled}"):
        code, is_queued, _ = job.run(start)
        assert (code, is_queued) == (1, False), "cancelled while its user is notified"
    for outcome in ("", "stopped 9"):
        (job.run_dir / "outcome").write_text(f"{outcome}\n")
        code, is_queued, output = job.run("told=yes; end_of_training 0")
        assert (code, is_queued, AS_ASKED in output) == (1, False, True)


def test_a_preempted_job_is_queued_again(job: Job) -> None:
    """Slurm does so only with a job that has not ended within GraceTime."""
    (job.run_dir / "outcome").write_text("stopped 9\n")
    job.save(9)
    for seen, is_preempted in (
        ("JobState=RUNNING Reason=None PreemptTime=1795 SuspendTime=None SecsPreSuspend=0", True),
        ("JobState=RUNNING Reason=None PreemptTime=1795 SuspendTime=1790 SecsPreSuspend=9", True),
        ("JobState=RUNNING Reason=None PreemptTime=1795 SuspendTime=1799 SecsPreSuspend=9", False),  # gang
        ("JobState=RUNNING Reason=None PreemptTime=None SuspendTime=None SecsPreSuspend=0", False),
        ("JobState=COMPLETING Reason=None PreemptTime=1795 SuspendTime=None SecsPreSuspend=0", False),
    ):
        slurm = (
            f"scontrol() {{ if [[ $* == *show\\ job* ]]; then echo '{seen}'; else log \"scontrol $*\"; fi; }}"
        )
        _, is_queued, output = job.run(f"{slurm}; end_of_training 0")
        assert (is_queued, "the job is preempted: stopped at step 9" in output) == (is_preempted,) * 2, seen


def test_ranks_before_their_first_step_may_end(job: Job) -> None:
    """A time limit's signal is for the ranks alone, so this script knows of it by their exit code."""
    code, is_queued, output = job.run("end_of_training 143")
    assert f"ended without saving since the checkpoint of step 4, {AS_ASKED}" in output
    assert (code, is_queued, "failed" in output) == (1, False, False)


def test_a_diverged_or_refused_run_is_not_requeued(job: Job) -> None:
    for outcome, words in (
        ("diverged 9", "the training diverged at step 9: not started again, since"),
        ("refused NCCL sends over TCP", "not started again: NCCL sends over TCP\n"),
    ):
        (job.run_dir / "outcome").write_text(f"{outcome}\n")
        code, is_queued, output = job.run("end_of_training 1")
        assert (code, is_queued, words in output) == (1, False, True)
        assert "RUN_NAME=mine sbatch --nodes 2 /fsx/training/job.slurm tiny\n" in output


def test_a_finished_training_is_reported(job: Job) -> None:
    (job.run_dir / "outcome").write_text("finished\n")
    output = job.run('tell() { log "tell $1"; }; end_of_training 0')
    assert output[::2] == (0, "the report\ndone\ntell finished\n")
