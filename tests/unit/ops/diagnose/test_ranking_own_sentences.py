"""The sentences with which our scripts end a job come before all that torchrun, NCCL and Slurm say of it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ops.diagnose.diagnose import diagnose_evidence
from ops.diagnose.render import Diagnosis
from ops.diagnose.texts import Gathered

TRAINING = Path(__file__).parents[4] / "assets" / "training"
BEFORE = """\
12:31:44 job.slurm: preparing gpt2 (skipped where it is done)
12:31:44 job.slurm: run folder /fsx/runs/gpt2/job-31
gpu-dy-p4d-1:4100:4200 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
step 100 loss 7.631 tokens/s 25387 world_size 16
"""
# What follows when a rank ends. These lines may arrive before its own sentence.
DERIVED = """\
[rank4]:[E1105 02:07:08.414 ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600067 milliseconds before timing out.
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, remote process exited or there \
was a network error, NCCL version 2.27.5, ncclRemoteError: A call failed possibly due to a network error
gpu-dy-p4d-2:4100:4212 [0] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to 10.0.0.4<56849> \
returned 113(No route to host) errno 115(Operation now in progress)
torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of \
(10.0.0.4, 12031).
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED
srun: error: gpu-dy-p4d-1: task 0: Exited with exit code 1
slurmstepd: error: *** STEP 31.0 ON gpu-dy-p4d-1 CANCELLED AT 2026-11-23T12:58:12 ***
12:58:12 job.slurm: the training failed (gpu-dy-p4d-1: exit code 1); not started again, since no checkpoint \
was written since this start, at step 0
"""
# Sentences of job.slurm on failures whose cause other lines name.
OTHERS = ("see the lines above",)
# The subclasses of Exception whose text lifecycle.main or fetch print as a sentence.
ERRORS = {"ShardError", "DataError", "WeightsError", "BucketError", "FetchError"}


def _text(node: ast.expr) -> str:
    """The text of an expression, with a number in the place of each value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_text, values))
        case ast.FormattedValue():
            return "7"
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
        case _:
            return "7"


def _of_python(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="die"), args=[sentence]):
                yield f"train.py on gpu-dy-p4d-1, rank 3: {_text(sentence)}"
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[sentence, *_])) if name in ERRORS:
                yield f"prepare.py: {_text(sentence)}"


def _of_shell(file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    for sentence in re.findall(r'\bdie "((?:[^"\\]|\\.)+)"', text):
        if not any(derived in sentence for derived in OTHERS):
            yield f"job.slurm: {re.sub(r'[$]([(][^)]*[)]|[{][^}]*[}]|[a-zA-Z_]+|[0-9])', '7', sentence)}"
    for sentence in re.findall(r"printf '((?:%s|\w+\.sh): [^']*?)(?:\\n[^']*)?'", text):
        yield re.sub(r"^%s", "train.sh", sentence).replace("%s", "7")


@cache
def sentences() -> list[str]:
    return sorted(
        {each for file in TRAINING.rglob("*.py") for each in _of_python(file)}
        | {each for file in (*TRAINING.rglob("*.sh"), TRAINING / "job.slurm") for each in _of_shell(file)}
    )


def _read(log: str) -> Diagnosis:
    texts = Gathered()
    texts.add("job-31.log", log)
    return diagnose_evidence(texts, cluster="training")


def _first_line(log: str) -> str:
    found = _read(log).causes
    return found[0].evidence[0].text if found else "no cause found"


def test_there_are_sentences_of_every_script() -> None:
    assert sum(each.startswith("train.py on") for each in sentences()) > 60
    assert sum(each.startswith("prepare.py: ") for each in sentences()) > 40
    assert sum(each.startswith("job.slurm: ") for each in sentences()) > 15
    assert sum(each.split(":")[0].endswith(".sh") for each in sentences()) > 7


@pytest.mark.parametrize("label", ["", pytest.param("3: ", marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", ["before", "between"])
def test_each_sentence_leads_the_first_cause(order: str, label: str) -> None:
    wrong = []
    for sentence in sentences():
        first = DERIVED if order == "between" else ""
        found = _first_line(f"{BEFORE}{first}{label}{sentence}\n{DERIVED}")
        if found != f"{label}{sentence}".strip():
            wrong.append((sentence, found))
    assert not wrong


def test_other_causes_win_over_own_sentences() -> None:
    found = _read(BEFORE + DERIVED).causes
    assert "own-sentence" not in {each.id for each in found}
    assert found
    sentence = "the world size is 1 and EXPECTED_WORLD_SIZE is 16: start it by launch.sh."
    found = _read(f"{BEFORE}{DERIVED}train.py on gpu-dy-p4d-1, rank 3: {sentence}\n{DERIVED}").causes
    assert found[0].id == "world-size"
    assert "own-sentence" not in {each.id for each in found}


def test_the_derived_causes_follow_from_the_sentence() -> None:
    sentence = "train.py on gpu-dy-p4d-1, rank 3: loss is nan at step 130."
    first, *others = _read(f"{BEFORE}{sentence}\n{DERIVED}").causes
    assert first.id == "own-sentence"
    assert others
    assert all(first.title in each.follows_from for each in others), [(e.id, e.follows_from) for e in others]


def test_other_lines_of_our_scripts_are_no_cause() -> None:
    for line in (
        "12:31:44 job.slurm: done",
        "job.slurm: gpt2 did not finish as it should: see the lines above.",
        "prepare.py: interrupted; what is finished is kept, submit again.",
        "reading train.py on the first node",
    ):
        assert _read(f"{BEFORE}{line}\n").causes == ()
