"""Each row of the table "what happened, what the job does" of docs/workloads.md has tests."""

import re

from training_cluster.paths import ROOT

SLOW, FAST = "slow/assets/training", "unit/assets/training"
RESTARTS, STOPS, ENDS = (
    f"{SLOW}/test_restarts.py",
    f"{SLOW}/test_restarts_stops.py",
    f"{FAST}/test_restarts.py",
)
RUN = f"{FAST}/trainkit/run"
NOT_FINITE = "finite|diverge"
# By row, the tests' files, and words that the name of a test has.
TESTS = {
    "a rank died": [(RESTARTS, "killed_rank"), (RESTARTS, "deaf_ranks"), (ENDS, "have_a_limit")],
    "a node was lost": [(RESTARTS, "lost_node")],
    "no step for": [(RESTARTS, "stopped_rank"), (f"{RUN}/test_heartbeat.py", "elsewhere|never_make_a_step")],
    "EC2 takes a spot node": [
        (STOPS, "spot_notice"),
        (ENDS, "spot_notice"),
        (f"{RUN}/test_stopping.py", "spot"),
    ],
    "the loss or the gradients are not finite": [
        *(
            (f"{SLOW}/test_{name}.py", NOT_FINITE)
            for name in ("gpt2", "bert_trainium", "gpt2_megatron", "roberta")
        ),
        (f"{SLOW}/titan/test_titan.py", NOT_FINITE),
        ("slow/ops/test_workload_template.py", NOT_FINITE),
    ],
    "time limit, `scancel`": [(STOPS, "long_saves")],
    "time limit, with `REQUEUE_AT_TIME_LIMIT=1`": [(STOPS, "time_limit"), (ENDS, "time_limit")],
    "`scontrol requeue`": [(STOPS, "long_saves")],
    "the newest checkpoint has lost files": [
        (RESTARTS, "damaged"),
        (RESTARTS, "changed_bytes"),
        (f"{RUN}/test_checkpoints.py", "incomplete_checkpoints"),
    ],
    "settings differ from the checkpoint's": [
        (f"{FAST}/trainkit/test_trainkit_resuming.py", "setting"),
        (f"{FAST}/trainkit/test_trainkit_resuming.py", "global_batch"),
    ],
    "the disk is full": [(RESTARTS, "full_disk")],
    "the preparation dies": [(RESTARTS, "preparation")],
    "slurmctld or slurmd dies": [(RESTARTS, "daemons")],
    "NCCL sends over TCP": [(f"{SLOW}/test_job.py", "tcp")],
    "rows of `metrics.jsonl`": [(RESTARTS, "damaged"), (f"{RUN}/test_metrics.py", "damaged")],
}


def test_each_row_has_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8")
    table = page.partition("| what happened | what the job does |")[2].partition("\n\n")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]
    assert len(rows) == len(TESTS), rows
    for row, (begin, tests) in zip(rows, TESTS.items(), strict=True):
        assert row.startswith(begin)
        for file, words in tests:
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^def test_\w*(?:{words})", text, re.MULTILINE), (row, file, words)
