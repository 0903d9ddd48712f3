"""The lines that a diagnosis shows where it finds no known cause."""

from pathlib import Path

import pytest

from ops.diagnose.diagnose import diagnose_evidence
from ops.diagnose.files import Files
from ops.diagnose.render import render
from ops.diagnose.texts import Gathered

LOGS = Path(__file__).parent / "logs"
NOISE = """\
step 100 loss 5.476 tokens/s 25390 world_size 16
gpu-dy-p4d-1:4100:4200 [0] NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin symbol (>= v5).
/usr/lib/python3.12/site-packages/x.py:12: UserWarning: the option is deprecated
0 errors in 12 files
"""


def unknown(log: str) -> list[tuple[int, str, int]]:
    texts = Gathered()
    texts.add("train.log", log)
    return [(each.line, each.text, each.count) for each in diagnose_evidence(texts, cluster="c").unknown]


def test_exceptions_come_first_and_similar_lines_are_counted() -> None:
    log = NOISE + (
        "worker 3: could not read /fsx/a/7.bin\n"
        "worker 12: could not read /fsx/b/31.bin\n"
        "Traceback (most recent call last):\n"
        '  File "/fsx/training/mine/train.py", line 12, in <module>\n'
        "mylib.errors.BadShardError: shard 12 has no header\n"
        "launcher: error: 1 of 2 workers failed\n"
        "TrainingClusterStack | 3/9 | UPDATE_IN_PROGRESS | AWS::Logs::MetricFilter | Failures\n"
        "3: KeyboardInterrupt\n"
        "terminate called after throwing an instance of 'c10::Error'\n"
    )
    assert unknown(log) == [
        (9, "mylib.errors.BadShardError: shard 12 has no header", 1),
        (13, "terminate called after throwing an instance of 'c10::Error'", 1),
        (10, "launcher: error: 1 of 2 workers failed", 1),
        (12, "3: KeyboardInterrupt", 1),
        (5, "worker 3: could not read /fsx/a/7.bin", 2),
    ]


def test_a_healthy_log_shows_no_line() -> None:
    assert unknown(NOISE) == []
    for log in LOGS.glob("healthy-*"):
        assert diagnose_evidence(Files([log]), cluster="c").unknown == (), log.name


@pytest.mark.parametrize("log", sorted(LOGS.glob("unknown-*")), ids=lambda log: log.name)
def test_an_unknown_log_shows_its_failure(log: Path) -> None:
    found = diagnose_evidence(Files([log]), cluster="c")
    assert found.unknown
    assert found.unknown[0].text == log.read_text().splitlines()[found.unknown[0].line - 1].strip()
    assert f"1. {log}:{found.unknown[0].line}" in list(render(found))


TIMEOUTS = "".join(
    f"[rank{rank}]:[E1105 02:07:08.414 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600067 ms\n"
    for rank in (0, 1, 2)
)
SOCKET = "gpu-dy-g5-1:4100:4200 [0] NCCL INFO Using network Socket\n"
TCP = "gpu-dy-g5-1:4100:4200 [0] NCCL INFO NET/OFI Selected provider is tcp, fabric is tcp (found 1 nics)\n"
RAISED = "[rank3]: packing.ShardError: shard 1714 has 4093 tokens, expected 4096\n"
CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED\n"


@pytest.mark.parametrize("consequence", [TIMEOUTS, SOCKET, TCP], ids=["timeouts", "socket", "tcp"])
@pytest.mark.parametrize("is_first", [True, False])
def test_an_unexplained_exception_precedes_its_consequences(consequence: str, is_first: bool) -> None:
    texts = Gathered()
    texts.add("train.log", (RAISED + consequence if is_first else consequence + RAISED) + CHILD)
    found = diagnose_evidence(texts, cluster="c")
    shown = "\n".join(render(found))
    assert shown.startswith("1. An error that no rule explains:")
    assert shown.index(RAISED.strip()) < shown.index(f"2. {found.causes[0].title}")
    assert CHILD.strip() not in shown
    assert not found.is_answered


def test_the_jobs_own_log_decides() -> None:
    texts = Gathered()
    texts.add(
        "train.log", RAISED + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    found = diagnose_evidence(texts, cluster="c")
    assert [each.id for each in found.causes] == ["cuda-oom"]
    assert found.unknown == ()
    texts = Gathered()
    texts.add("job-7.log", TIMEOUTS)
    texts.add("cloudwatch/clustermgtd", "ValueError: of another day\n")
    found = diagnose_evidence(texts, cluster="c", about="job-7")
    assert [each.id for each in found.causes] == ["nccl-timeout"]
    assert found.unknown == ()
    texts = Gathered()
    texts.add("job-7.log", RAISED)
    texts.add("cloudwatch/slurm_resume", "(InsufficientInstanceCapacity) when calling the CreateFleet\n")
    found = diagnose_evidence(texts, cluster="c", about="job-7")
    assert [each.text for each in found.unknown] == [RAISED.strip()]


def test_a_secret_in_such_a_line_is_masked() -> None:
    ((_, text, _),) = unknown(
        "error: login failed with aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"
    )
    assert "wJalrXUtnFEMI" not in text
