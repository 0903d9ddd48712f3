"""The nccl-tests workload on two nodes of a real Slurm on this machine: an all-reduce over gloo, judged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slow.assets.training.training import Training, training_on_slurm

pytestmark = pytest.mark.slow

SETTINGS = {"MIN_BYTES": "1024", "MAX_BYTES": "1048576"}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training_on_slurm(tmp_path_factory.mktemp("nccl"), workload="nccl-tests", env=SETTINGS) as training:
        yield training


def test_two_nodes_reduce_together_and_the_judge_says_so(training: Training) -> None:
    said = training.run("good")
    assert "all-reduce as it should be: 2 nodes, 2 ranks" in said
    rows = training.metrics("good")
    assert [row["message_bytes"] for row in rows] == [1024 * 2**i for i in range(11)]
    assert {row["world_size"] for row in rows} == {2}
    assert all(row["busbw_gb_per_s"] > 0 for row in rows[-3:])


def test_a_bad_verdict_fails_the_job_which_does_not_start_again(training: Training) -> None:
    program = training.shared / "training" / "nccl-tests" / "all_reduce.py"
    whole = program.read_text(encoding="utf-8")
    program.write_text(whole.replace("total_wrong += wrong", "total_wrong += 1"), encoding="utf-8")
    said = training.wait(training.submit("bad"), state="FAILED")
    program.write_text(whole, encoding="utf-8")
    assert "11 values came out wrong: a GPU or a card corrupts data" in said
    assert "nccl-tests did not finish as it should" in said
    assert len((training.run_dir("bad") / "starts").read_text().splitlines()) == 1


def test_a_gpu_node_without_the_tests_is_told_to_build_an_image(training: Training) -> None:
    env = {"DEVICE": "gpu", "TRAINING_REHEARSAL": "0", "MEASURE_WITH": "nccl-tests"}
    said = training.wait(training.submit("missing", **env), state="FAILED")
    assert "has no all_reduce_perf: the image build compiles it" in said
    assert "-c image=build" in said
