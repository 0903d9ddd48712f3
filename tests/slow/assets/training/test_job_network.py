"""NCCL over TCP between nodes with EFA: job.slurm on a real Slurm, and NCCL's lines from a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.assets.training.tiny import tiny_on_slurm
from tests.slow.assets.training.training import NODES, Training
from training_cluster.paths import ROOT

pytestmark = pytest.mark.slow
LOGS = ROOT / "tests" / "unit" / "assets" / "training" / "nccl_tests" / "logs"
TCP = {"EFA_INTERFACES": "4", "NCCL_LINES": str(LOGS / "bad-efa-unused.log")}
EFA = {"EFA_INTERFACES": "4", "NCCL_LINES": str(LOGS / "good-p4d-2-nodes.log")}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with tiny_on_slurm(tmp_path_factory.mktemp("network")) as training:
        yield training


@pytest.mark.parametrize("launcher", ["torchrun", "srun"])
def test_a_strict_run_on_tcp_ends_at_its_first_step_and_keeps_its_checkpoint(
    training: Training, launcher: str
) -> None:
    run = f"strict-{launcher}"
    said = training.run(run, STRICT_NETWORK="1", MAX_STEPS="4", LAUNCHER=launcher, **EFA)
    assert "network between the nodes: Libfabric" in said
    # A saved step would be a reason to start again.
    job_id = training.submit(run, STRICT_NETWORK="1", CHECKPOINT_EVERY="1", LAUNCHER=launcher, **TCP)
    said = training.wait(job_id, state="FAILED")
    reason = (
        f"NCCL sends over TCP (NET/Socket) on {', '.join(NODES)}, and these nodes have 4 EFA cards each: "
    )
    assert f"rank 0: {reason}" in said
    assert f"not started again: {reason}" in said
    assert f"continue from step 4: TRAINING_SHARED={training.shared} RUN_NAME={run} sbatch --nodes 2" in said
    run_dir, checkpoints = training.run_dir(run), training.checkpoints(run)
    assert (run_dir / "outcome").read_text().startswith(f"refused {reason}")
    assert (checkpoints / "latest_step").read_text().strip() == "4"
    assert sorted(path.name for path in checkpoints.glob("step-*")) == ["step-000002", "step-000004"]
    assert len((run_dir / "starts").read_text().splitlines()) == 2
    assert (run_dir / "ends").read_text().splitlines()[-1].split()[3] != "0"
    said = training.run(run, LAUNCHER=launcher, **TCP)
    assert f"WARNING: {reason}" in said
    assert "training from step 4" in said
    assert [row["step"] for row in training.metrics(run)] == list(range(1, 9))


def test_a_strict_run_whose_nccl_writes_nothing_ends_too(training: Training, tmp_path: Path) -> None:
    (tmp_path / "nothing.log").touch()
    silent = TCP | {"NCCL_LINES": str(tmp_path / "nothing.log")}
    said = training.wait(training.submit("silent", STRICT_NETWORK="1", LATE_S="1", **silent), state="FAILED")
    assert "not started again: NCCL has not written which network it takes on 2 of 2 nodes." in said
    assert not (training.checkpoints("silent") / "latest_step").exists()
