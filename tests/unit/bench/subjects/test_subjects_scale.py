"""The benchmark of many nodes: parsing of slurmctld's log and of sdiag, and its rows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench import nodes
from bench.scale import job_rows, provider_rows, slurm_rows, start_rows
from bench.subjects.provider import Created
from bench.subjects.scale_config import NODES, QUEUES, main
from bench.subjects.scale_job import JobWork, make_shared, parse_calls, steps_s
from bench.subjects.scale_node import NodeWork, measure_node
from bench.subjects.scale_slurm import Allocation, chosen, hosts, last_said, read_log
from bench.subjects.shared_files import Calls, Starts, count
from rehearsal.local_slurm import SlurmError

LOG = """\
slurmctld: starting
[2026-11-22T07:00:00.500] _slurm_rpc_submit_batch_job: JobId=7 InitPrio=1 usec=5
[2026-11-22T07:00:01.000] sched: Allocate JobId=7 NodeList=gpu-dy-p5-[1-2]
[2026-11-22T07:00:02.000] sched/backfill: _start_job: Started JobId=70 in gpu on gpu-dy-p5-1
[2026-11-22T07:00:03.250] Node gpu-dy-p5-1 now responding
"""
SDIAG = """\
Jobs started:   1
Remote Procedure Call statistics by message type
\tREQUEST_STATS_INFO                      ( 2035) count:129    ave_time:657    total_time:86115
\tREQUEST_JOB_STEP_CREATE                 ( 5001) count:1      ave_time:433    total_time:433
Remote Procedure Call statistics by user
\troot            (       0) count:140    ave_time:826    total_time:117427
"""


def allocation(count: int, seconds: float) -> Allocation:
    return Allocation(
        nodes=count,
        chosen_s=seconds,
        registered_s=9,
        running_s=seconds,
        released_s=3 * seconds,
        slurmctld_cpu_s=0.1,
    )


def job(count: int, calls: int, files: int) -> JobWork:
    return JobWork(nodes=count, seconds=9, bare_s=0.5, script_s=0.5, calls={"A": calls}, files=["f"] * files)


def test_times_come_from_slurmctlds_log_of_that_very_job() -> None:
    log = read_log(LOG)
    assert last_said(log, *chosen(7)) - last_said(log, "_slurm_rpc_submit_batch_job: JobId=7 ") == 0.5
    assert last_said(log, *chosen(70)) - last_said(log, *chosen(7)) == 1
    with pytest.raises(SlurmError, match="gpu-dy-p5-2"):
        last_said(log, "Node gpu-dy-p5-2 now responding ")


def test_calls_are_those_by_kind_without_sdiags_own() -> None:
    assert parse_calls(SDIAG) == {"REQUEST_JOB_STEP_CREATE": 1}


def test_jobs_get_nodes_that_no_other_had() -> None:
    assert hosts(65, 128) == "gpu-dy-p5-[65-192]"


def test_slower_than_linear_is_missed() -> None:
    verdicts = [row.verdict for row in slurm_rows([allocation(64, 1), allocation(512, 9)])]
    assert verdicts == ["", "missed", "missed", ""]
    verdicts = [row.verdict for row in slurm_rows([allocation(64, 1), allocation(512, 7)])]
    assert verdicts == ["", "met", "met", ""]


def test_calls_must_not_grow_with_the_nodes_of_a_job_and_files_by_two_a_rank_alone() -> None:
    quick, slow = NodeWork(cpu_s=0.02, wall_s=0.1), NodeWork(cpu_s=0.02, wall_s=2.6)
    rows = job_rows(job(2, 8, 3), job(512, 8, 1023), quick)
    assert [row.verdict for row in rows] == ["met", "met", "met", ""]
    rows = job_rows(job(2, 8, 3), job(512, 520, 1024), slow)
    assert [row.verdict for row in rows] == ["missed", "missed", "missed", ""]


def test_steps_are_those_that_the_batch_script_started(tmp_path: Path) -> None:
    variables = make_shared(tmp_path)
    (tmp_path / "slurm").mkdir()
    real = tmp_path / "slurm" / "srun"
    real.write_text("#!/bin/sh\nsleep 0.2; exit 3\n")
    real.chmod(0o755)
    env = variables | {"WITHOUT_TIMES": f"{real.parent}:{variables['WITHOUT_TIMES']}"}
    assert subprocess.run(["sh", "-c", "srun true"], env=env).returncode == 3
    assert steps_s(Path(variables["STEP_TIMES"]).read_text()) >= 0.2
    assert steps_s("1.5 2.0\n3 4.25\n") == 1.75


def test_memory_is_judged_by_what_the_function_has() -> None:
    one = Created(calls=60, peak_mib=700, seconds=9)
    assert provider_rows(one, Created(calls=200, peak_mib=1000, seconds=9))[0].verdict == "met"
    assert provider_rows(one, Created(calls=200, peak_mib=1100, seconds=9))[0].verdict == "missed"


def test_the_config_has_all_queues_and_nodes(tmp_path: Path) -> None:
    main(tmp_path / "config.yaml")
    queues = json.loads((tmp_path / "config.yaml").read_text())["Scheduling"]["SlurmQueues"]
    assert len(queues) == QUEUES
    assert {queue["ComputeResources"][0]["MaxCount"] for queue in queues} == {NODES}


def test_the_stub_starts_its_rank_by_the_shipped_launch_script(tmp_path: Path) -> None:
    variables = make_shared(tmp_path)
    training = tmp_path / "shared" / "training"
    assert (training / "job.slurm").is_file()
    ranks = {"LAUNCHER": "srun", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "EXPECTED_WORLD_SIZE": "1"}
    rest = {"NPROC_PER_NODE": "1", "MASTER_ADDR": "127.0.0.1", "PATH": "/usr/bin:/bin"}
    train = ["bash", str(training / "stub" / "train.sh")]
    done = subprocess.run(train, env=variables | ranks | rest, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "shared" / "venvs" / "stub" / "bin" / "python").unlink()
    assert subprocess.run(train, env=variables | ranks | rest, capture_output=True).returncode != 0


def test_the_work_of_a_node_is_that_of_its_launch_script(tmp_path: Path) -> None:
    variables = make_shared(tmp_path)
    train = tmp_path / "shared" / "training" / "stub" / "train.sh"
    work = measure_node(train=train, variables=variables, nodes=512, rounds=2)
    assert work.cpu_s > 0 and work.wall_s > 0
    assert (tmp_path / "shared" / "runs" / "one-node" / "logs" / "1-0" / "rank-1.stderr.log").is_file()


def test_seconds_of_a_nodes_start_are_those_between_what_it_said() -> None:
    said = [(1.0, "bootstrap: x runs the bundle 12"), (1.5, "noise"), (3.0, "bootstrap: step 10-a: done")]
    took = nodes.read_steps(said, began=0.0)
    assert took == {"fetch and verify the bundle": 1.0, "10-a": 2.0}
    assert [row.verdict for row in nodes.rows([took, took])] == ["met", ""]
    assert nodes.rows([{"10-a": 11.0}])[0].verdict == "missed"


TRACE = """\
4100 execve("/usr/bin/bash", ["bash", "/fsx/training/gpt2/train.sh"], 0x7ffd /* 20 vars */) = 0
4100 openat(AT_FDCWD, "/fsx/venvs/gpt2/bin/python", O_RDONLY|O_CLOEXEC) = 3
4101 newfstatat(AT_FDCWD, "/fsx/venvs/gpt2/lib", {st_mode=S_IFDIR|0755, st_size=10, ...}, 0) = 0
4101 newfstatat(AT_FDCWD, "/fsx/venvs/gpt2/lib", {st_mode=S_IFDIR|0755, st_size=10, ...}, 0) = 0
4101 newfstatat(3, "", {st_mode=S_IFREG|0755, st_size=10, ...}, AT_EMPTY_PATH) = 0
4101 openat(AT_FDCWD, "/fsx-other/file", O_RDONLY) = -1 ENOENT (No such file or directory)
4101 getcwd("/fsx", 4096) = 5
4101 openat(AT_FDCWD, "/fsx/checkpoints/.step-000002.partial", O_RDONLY|O_DIRECTORY) = 3
4101 openat(AT_FDCWD, "/fsx/venvs/gpt2/late.py", O_RDONLY) = 3
"""


def test_calls_on_the_shared_folder_are_counted_until_the_first_checkpoint() -> None:
    assert count(TRACE.splitlines(), [Path("/fsx")]) == Calls(opens=1, others=3, paths=3)


def test_a_start_with_a_local_environment_is_compared_with_a_shared_one() -> None:
    starts = Starts(
        shared=Calls(opens=10_000, others=40_000, paths=9000),
        local=Calls(opens=90, others=1000, paths=100),
        unpacked_s=20,
        archive_bytes=2_000_000_000,
    )
    opens, others, packed = start_rows(starts)
    assert (opens.verdict, others.verdict) == ("met", "missed")
    assert packed.measured.startswith("20 s for 2.0 GB")
    assert {row.verdict for row in start_rows(None)} == {"not run"}
