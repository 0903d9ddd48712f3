"""The verdicts on nccl-tests' output: recorded and composed logs (nccl_logs/), good and bad."""

import subprocess
import sys
from pathlib import Path

from training_cluster.paths import TRAINING

JUDGE = TRAINING / "nccl-tests" / "judge.py"
LOGS = Path(__file__).parent / "logs"
P4D = {"FAMILY": "p4d", "EFA_INTERFACES": "4", "NCCL_FLOORS": "2:1:41", "NETWORK_GBPS": "400"}
P4DE = P4D | {"FAMILY": "p4de", "NCCL_FLOORS": "2:2:70"}
P5 = {"FAMILY": "p5", "EFA_INTERFACES": "32", "NCCL_FLOORS": "2:1:250 2:2:394 2:16:438"}
JOB = {"NNODES": "2", "EXPECTED_WORLD_SIZE": "16", "ACCELERATOR_KIND": "gpu", "PLACEMENT_GROUP": "yes"}


def judge(log: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code, and all that the judge says of a log."""
    done = subprocess.run(
        [sys.executable, JUDGE, LOGS / f"{log}.log", *arguments],
        env=JOB | environment,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


SLOW, UNUSED, P4D_2 = "bad-no-placement-group", "bad-efa-unused", "good-p4d-2-nodes"


def test_a_run_has_one_verdict() -> None:
    for code, log, environment, said in (
        (0, P4D_2, P4D, "measured 45.8 at 1 GiB, where the floor is 41"),
        (0, "good-p4de-2-nodes", P4DE, "measured 78.33 at 2 GiB, where the floor is 70"),
        (0, "good-p5-2-nodes", P5, "measured 487.09 at 16 GiB, where the floor is 438"),
        (1, UNUSED, P4D, "EFA unused: NCCL goes through Socket"),
        (1, UNUSED, P4D | {"DEVICE": "cuda"}, "EFA unused"),
        (1, UNUSED, P4D | {"DEVICE": "gpu"}, "EFA unused"),
        (0, UNUSED, P4D | {"DEVICE": "cpu"}, ""),
        (1, "bad-provider-tcp", P4D, "EFA unused: NCCL goes through tcp"),
        (1, "bad-one-card-missing", P4D, "a process found 3 EFA cards, and a node of p4d has 4"),
        (1, "bad-two-worlds", P4D, "worlds of 8 and 8 ranks instead of one of 16"),
        (1, "bad-values", P4D, "7 values came out wrong"),
        (1, "bad-ended-early", P4D, "did not finish"),
        (1, SLOW, P4D, "too slow: 35 GB/s at 1 GiB; 2 nodes of p4d give 41 at least"),
        (1, SLOW, P4D | {"PLACEMENT_GROUP": "no"}, "They have no placement group"),
        (1, SLOW, P4D | {"PLACEMENT_GROUP": "yes"}, "EFA and all its cards are in use"),
        (0, SLOW, P4D | {"NNODES": "4"}, "no floor is known for 4 nodes of p4d (line rate 50 GB/s a node"),
        (0, P4D_2, P4D | {"NCCL_FLOORS": "2:16:48"}, "no floor is known"),
    ):
        found, output = judge(log, **environment)
        assert (found, said in output, output.count("judge.py: ")) == (code, True, code), output


def test_wrong_calls_get_a_sentence(tmp_path: Path) -> None:
    code, output = judge("no-such-log", **P4D)
    assert (code, "there is no file" in output) == (2, True)
    done = subprocess.run(
        [sys.executable, JUDGE, LOGS / "good-p4d-2-nodes.log"], env={}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "EXPECTED_WORLD_SIZE=16" in done.stderr
    assert "Traceback" not in done.stderr
