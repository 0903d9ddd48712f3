"""The verdicts on nccl-tests' output: recorded and composed logs (logs/), good and bad."""

import io
import os
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

JUDGE = TRAINING / "nccl-tests" / "judge.py"
LOGS = Path(__file__).parent / "logs"
P4D = {"FAMILY": "p4d", "EFA_INTERFACES": "4", "NCCL_FLOORS": "2:1:41", "NETWORK_GBPS": "400"}
P4DE = P4D | {"FAMILY": "p4de", "NCCL_FLOORS": "2:2:70"}
P5 = {"FAMILY": "p5", "EFA_INTERFACES": "32", "NCCL_FLOORS": "2:1:250 2:2:394 2:16:438"}
JOB = {"NNODES": "2", "EXPECTED_WORLD_SIZE": "16", "ACCELERATOR_KIND": "gpu", "PLACEMENT_GROUP": "yes"}
P4D_2, UNUSED = "good-p4d-2-nodes", "bad-efa-unused"
# What differs from the good log. 252 of 330 Gbps: what OSU's benchmark lost without a placement group on p4d.
CHANGED = {
    "slow": ("24.43   45.80", "18.67   35.00"),
    "card": ("found 4 nics", "found 3 nics"),
    "wrong": ("Out of bounds values : 0 OK", "Out of bounds values : 7 FAILED"),
    "early": ("# Out of bounds values : 0 OK\n", ""),
}


def judge(log: Path, **environment: str) -> tuple[int, str]:
    """Return the exit code, and all that the judge says of a log."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as given, pytest.raises(SystemExit) as ended:
        given.setattr(sys, "argv", ["judge.py", str(log)])
        given.setattr(os, "environ", environment)
        with redirect_stdout(said), redirect_stderr(said):
            runpy.run_path(str(JUDGE), run_name="__main__")
    return int(str(ended.value.code)), said.getvalue()


def test_a_run_has_one_verdict(tmp_path: Path) -> None:
    for name, (old, new) in CHANGED.items():
        good = (LOGS / f"{P4D_2}.log").read_text()
        assert old in good
        (tmp_path / f"{name}.log").write_text(good.replace(old, new))
    for code, log, environment, said in (
        (0, P4D_2, P4D, "measured 45.8 at 1 GiB, where the floor is 41"),
        (0, "good-p4de-2-nodes", P4DE, "measured 78.33 at 2 GiB, where the floor is 70"),
        (0, "good-p5-2-nodes", P5, "measured 487.09 at 16 GiB, where the floor is 438"),
        (1, UNUSED, P4D, "EFA unused: NCCL goes through Socket"),
        (1, UNUSED, P4D | {"DEVICE": "cuda"}, "EFA unused"),
        (1, UNUSED, P4D | {"DEVICE": "gpu"}, "EFA unused"),
        (0, UNUSED, P4D | {"DEVICE": "cpu"}, ""),
        (1, "bad-provider-tcp", P4D, "EFA unused: NCCL goes through tcp"),
        (1, "card", P4D, "a process found 3 EFA cards, and a node of p4d has 4"),
        (1, "bad-two-worlds", P4D, "worlds of 8 and 8 ranks instead of one of 16"),
        (1, "wrong", P4D, "7 values came out wrong"),
        (1, "early", P4D, "did not finish"),
        (1, "slow", P4D, "too slow: 35 GB/s at 1 GiB; 2 nodes of p4d give 41 at least"),
        (1, "slow", P4D | {"PLACEMENT_GROUP": "no"}, "They have no placement group"),
        (1, "slow", P4D | {"PLACEMENT_GROUP": "yes"}, "EFA and all its cards are in use"),
        (0, "slow", P4D | {"NNODES": "4"}, "no floor is known for 4 nodes of p4d (line rate 50 GB/s a node"),
        (0, P4D_2, P4D | {"NCCL_FLOORS": "2:16:48"}, "no floor is known"),
    ):
        folder = tmp_path if log in CHANGED else LOGS
        found, output = judge(folder / f"{log}.log", **JOB | environment)
        assert (found, said in output, output.count("judge.py: ")) == (code, True, code), output


def test_wrong_calls_get_a_sentence() -> None:
    code, output = judge(LOGS / "no-such.log", **JOB | P4D)
    assert (code, "there is no file" in output) == (2, True)
    code, output = judge(LOGS / f"{P4D_2}.log")
    assert (code, "EXPECTED_WORLD_SIZE=16" in output) == (2, True)
