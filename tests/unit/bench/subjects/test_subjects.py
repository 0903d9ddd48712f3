"""Figures of the benchmarks that no failed run would show to be wrong."""

import pytest

from bench import checkpoint, data
from bench.subjects.gpt2_programs import Sizes
from bench.subjects.scale_job import parse_calls
from bench.subjects.scale_slurm import chosen, last_said, read_log

LOG = """\
slurmctld: starting
[2026-11-22T07:00:00.500] _slurm_rpc_submit_batch_job: JobId=7 InitPrio=1 usec=5
[2026-11-22T07:00:01.000] sched: Allocate JobId=7 NodeList=gpu-dy-p5-[1-2]
[2026-11-22T07:00:02.000] sched/backfill: _start_job: Started JobId=70 in gpu on gpu-dy-p5-1
"""
SDIAG = """\
Remote Procedure Call statistics by message type
\tREQUEST_STATS_INFO                      ( 2035) count:129    ave_time:657    total_time:86115
\tREQUEST_JOB_STEP_CREATE                 ( 5001) count:1      ave_time:433    total_time:433
Remote Procedure Call statistics by user
\troot            (       0) count:140    ave_time:826    total_time:117427
"""


def test_parameters_agree_with_gpt2() -> None:
    sizes = Sizes(layers=12, heads=12, width=768, context=1024, vocab_size=50304, batch=12, steps=2, after=1)
    # 124,439,808 with 50,257 tokens and 1,024 positions; 47 rows more, and no positions.
    assert sizes.parameters == 124_439_808 + 47 * 768 - 1024 * 768


def test_stall_includes_slow_steps_after_a_checkpoint() -> None:
    # Steps of 1 s; the checkpoints after steps 4 and 8 cost 0.75 s and 0.25 s.
    took = [0.0, 1, 1, 1, 1.5, 1.25, 1, 1, 1.25, 1, 1, 1]
    times = [sum(took[: number + 1]) for number in range(len(took))]
    quiet, found = checkpoint.stalls(times, every=4)
    assert quiet == pytest.approx(1.0)
    assert found == pytest.approx([0.75, 0.25])


def test_absent_baseline_is_not_run() -> None:
    rows = data._against("gpt2", "nanoGPT's prepare", [], None)
    assert [row.verdict for row in rows] == ["not run", "not run"]


def test_times_are_read_for_the_job_alone() -> None:
    log = read_log(LOG)
    assert last_said(log, *chosen(7)) - last_said(log, "_slurm_rpc_submit_batch_job: JobId=7 ") == 0.5
    assert last_said(log, *chosen(70)) - last_said(log, *chosen(7)) == 1


def test_calls_exclude_sdiags_own() -> None:
    assert parse_calls(SDIAG) == {"REQUEST_JOB_STEP_CREATE": 1}
