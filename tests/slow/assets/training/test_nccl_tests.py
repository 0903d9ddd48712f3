"""The nccl-tests workload on two nodes of a real Slurm on this machine: an all-reduce over gloo, judged."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from ops.verify.gpu import GPU_CHECKS
from ops.verify.node_jobs import JobSeen
from tests.slow.assets.training.training import Training, training_on_slurm

pytestmark = pytest.mark.slow

SETTINGS = {"MIN_BYTES": "1024", "MAX_BYTES": "1048576"}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("nccl")
    with training_on_slurm(folder, workload="nccl-tests", env=SETTINGS, nodes=4) as training:
        yield training


def test_two_nodes_reduce_together(training: Training) -> None:
    said = training.run("good")
    assert "all-reduce as it should be: 2 nodes, 2 ranks" in said
    rows = training.metrics("good")
    assert [row["message_bytes"] for row in rows] == [1024 * 2**i for i in range(11)]
    assert {row["world_size"] for row in rows} == {2}
    assert all(row["busbw_gb_per_s"] > 0 for row in rows[-3:])


def test_a_bad_verdict_fails_the_job_for_good(training: Training) -> None:
    program = training.shared / "training" / "nccl-tests" / "all_reduce.py"
    whole = program.read_text(encoding="utf-8")
    program.write_text(whole.replace("total_wrong += wrong", "total_wrong += 1"), encoding="utf-8")
    said = training.wait(training.submit("bad"), state="FAILED")
    program.write_text(whole, encoding="utf-8")
    assert "11 values came out wrong: a GPU or a card corrupts data" in said
    assert "nccl-tests did not finish as it should" in said
    assert len((training.run_dir("bad") / "starts").read_text().splitlines()) == 1


def test_a_sweep_names_slow_and_broken_nodes(training: Training) -> None:
    program = training.shared / "training" / "nccl-tests" / "all_reduce.py"
    whole = program.read_text(encoding="utf-8")
    sick = (
        'node = os.environ["SLURMD_NODENAME"]\n    if node.endswith("-2"):\n        sys.exit("no GPU here")\n'
        # A clock that does not depend on how busy this machine is.
        '    is_slow = node.endswith("-4") and os.environ["WORLD_SIZE"] != "1"\n'
        "    clock = itertools.count(step=0.5 if is_slow else 0.01)\n"
        "    time.perf_counter = lambda: next(clock)\n"
    )
    text = whole.replace("import socket", "import itertools\nimport socket\nimport sys")
    at = 'is_gpu = os.environ["MEASURED_DEVICE"]'
    program.write_text(text.replace(f"    {at}", f"    {sick}    {at}"), encoding="utf-8")
    job = training.submit("sweep", "--nodes=4", LAUNCHER="sweep", SWEEP_BYTES="1M", SWEEP_SHARE="0.2")
    said = training.wait(job, state="FAILED")
    program.write_text(whole, encoding="utf-8")
    found = json.loads((training.run_dir("sweep") / "sweep.json").read_text())
    assert found["swept"] == 4, said
    reasons = {each["node"].rpartition("-")[2]: each["reason"] for each in found["nodes"]}
    assert "no GPU here" in reasons["2"], said
    assert reasons["4"].startswith("with train-dy-p4d-"), said
    assert "BAD, alone: exit code 1: " in said
    assert "nccl-tests did not finish as it should" in said
    assert {name for name, reason in reasons.items() if reason} == {"2", "4"}, said


# Of a real H100, idle; SLOWED is what a test answers about slowdowns.
H100 = (
    "NVIDIA H100 80GB HBM3, 580.159.04, 1980, 1980, 38, 127.69, 5, 16, 5, 16, SLOWED, [N/A], SLOWED, SLOWED"
)


def test_products_name_a_gpu_that_is_slowed(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    """On CPUs, with an nvidia-smi that answers as a GPU's, and read as by trainctl verify --gpu."""
    tool = training.shared / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    answer = H100.replace("SLOWED", "$SLOWED")
    tool.write_text(f'#!/bin/bash\n[[ $1 == --id=0 && $2 == *hw_thermal* ]] && echo "{answer}"\n')
    tool.chmod(0o755)
    (check,) = (each for each in GPU_CHECKS if each.id == "gpu-load")
    scene: Any = None
    found = []
    for slowed, state in (("Not Active", "COMPLETED"), ("Active", "FAILED")):
        path = f"{tool.parent}:{os.environ['PATH']}"
        job = training.submit(state, MEASURE_WITH="product", PATH=path, SLOWED=slowed)
        said = training.wait(job, state=state)
        monkeypatch.setattr("ops.verify.gpu._seen", lambda *_, said=said: JobSeen(id="1", run="", text=said))
        found.append(check.look(scene))
    (is_held, devices), (is_slow_held, reasons) = found
    assert (is_held, is_slow_held) == (True, False), found
    h100 = (
        "NVIDIA H100 80GB HBM3, driver 580.159.04, SM 1980 of 1980 MHz, 38 C, 127.69 W, PCIe 5 x16 of 5 x16"
    )
    assert devices.count(h100) == 2
    assert reasons.endswith(
        " is slowed while it works: hw_slowdown, hw_power_brake_slowdown, sw_thermal_slowdown"
    )
    assert "nccl-tests did not finish as it should" in said
    rows = training.metrics("COMPLETED")
    assert [(row["step"], row["world_size"]) for row in rows] == [(step, 2) for step in range(1, 11)]
    assert all(row["tflops"] > 0 for row in rows)
