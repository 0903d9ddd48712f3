"""The verdicts on nccl-tests' output: recorded and composed logs (nccl_logs/), good and bad."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("log", "family", "said"),
    [
        ("good-p4d-2-nodes", P4D, "measured 45.8 at 1 GiB, where the floor is 41"),
        ("good-p4de-2-nodes", P4DE, "measured 78.33 at 2 GiB, where the floor is 70"),
        ("good-p5-2-nodes", P5, "measured 487.09 at 16 GiB, where the floor is 438"),
    ],
)
def test_good_runs_pass_and_say_their_floor(log: str, family: dict[str, str], said: str) -> None:
    code, output = judge(log, **family)
    assert (code, said in output) == (0, True), output


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("bad-efa-unused", "EFA unused: NCCL goes through Socket"),
        ("bad-provider-tcp", "EFA unused: NCCL goes through tcp"),
        ("bad-one-card-missing", "cards missing: a process found 3 EFA cards, and a node of p4d has 4"),
        ("bad-two-worlds", "worlds of 8 and 8 ranks instead of one of 16"),
        ("bad-values", "7 values came out wrong"),
        ("bad-ended-early", "did not finish"),
    ],
)
def test_bad_runs_fail_with_their_cause_alone(log: str, said: str) -> None:
    code, output = judge(log, **P4D)
    assert code == 1
    assert said in output
    assert output.count("judge.py: ") == 1


def test_gpus_are_held_to_their_network() -> None:
    assert [judge("bad-efa-unused", **P4D, DEVICE=each)[0] for each in ("cuda", "gpu", "cpu")] == [1, 1, 0]


def test_a_slow_run_has_its_likely_cause() -> None:
    for group, said in {
        "no": "They have no placement group",
        "yes": "EFA and all its cards are in use",
    }.items():
        code, output = judge("bad-no-placement-group", **P4D, PLACEMENT_GROUP=group)
        assert code == 1
        assert "too slow: 35 GB/s at 1 GiB; 2 nodes of p4d give 41 at least" in output
        assert said in output


def test_a_floor_of_other_runs_is_none() -> None:
    code, output = judge("bad-no-placement-group", **P4D, NNODES="4")
    assert code == 0
    assert "no floor is known for 4 nodes of p4d (line rate 50 GB/s a node" in output
    code, output = judge("good-p4d-2-nodes", **P4D | {"NCCL_FLOORS": "2:16:48"})
    assert code == 0
    assert "no floor is known" in output


def test_metrics_have_a_line_a_size(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    assert judge("good-p4d-2-nodes", "--metrics", str(metrics), **P4D)[0] == 0
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [row["message_bytes"] for row in rows] == [2**24, 2**28, 2**30]
    assert {row["world_size"] for row in rows} == {16}
    assert rows[-1]["busbw_gb_per_s"] == pytest.approx(45.8)


def test_wrong_calls_get_a_sentence(tmp_path: Path) -> None:
    code, output = judge("no-such-log", **P4D)
    assert (code, "there is no file" in output) == (2, True)
    done = subprocess.run(
        [sys.executable, JUDGE, LOGS / "good-p4d-2-nodes.log"], env={}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "EXPECTED_WORLD_SIZE=16" in done.stderr
    assert "Traceback" not in done.stderr
