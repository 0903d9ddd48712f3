"""`trainctl export`: the job that it submits, and what it refuses before."""

import json

import pytest

from tests.unit.ops.jobs_head_node import Call, PlayedCluster
from training_cluster.paths import TRAINING


@pytest.fixture
def run(cluster: PlayedCluster) -> PlayedCluster:
    """A cluster with a run of titan that has checkpoints of steps 5 and 10, and one of gpt2."""
    (cluster.shared / "training" / "trainkit").symlink_to(TRAINING / "trainkit")
    for workload in ("titan", "gpt2"):
        cluster.has_workload(workload)
        folder = cluster.shared / "runs" / workload / f"my-{workload}"
        folder.mkdir(parents=True)
        (folder / "starts").write_text("0 0 2026-01-01T00:00:00Z gpu-dy-p4d-1 17\n")
        for step in (5, 10):
            saved = cluster.shared / "checkpoints" / workload / f"my-{workload}" / f"step-{step:06d}"
            saved.mkdir(parents=True)
            (saved / "weights").write_text("w")
    (cluster.shared / "training" / "titan" / "exporting.py").write_text("")
    cluster.says("sbatch", "31\n")
    return cluster


@pytest.mark.slow
def test_a_checkpoint_is_exported_by_a_job(run: PlayedCluster, call: Call) -> None:
    code, said, _ = call("export", "my-titan", "--json")
    told = json.loads(said)
    assert (code, told["run"], told["step"]) == (0, "titan/my-titan", 10)
    assert told["to"] == "/fsx/runs/titan/my-titan/export-step-000010"
    assert told["submitted"]["command"].startswith(
        "env EXPORT_RUN=my-titan EXPORT_STEP=10 EXPORT_TO=/fsx/runs/titan/my-titan/export-step-000010 "
        "RUN_NAME=my-titan-export-10 sbatch --parsable --nodes=1 --job-name=titan "
    )
    assert run.called("sbatch")[0][-2:] == [f"{run.shared}/training/job.slurm", "titan"]
    code, said, _ = call("export", "17", "--checkpoint", "5", "--out", "/fsx/checkpoints/mine")
    assert code == 2, "two runs are of job 17"
    code, said, _ = call("export", "titan/my-titan", "--checkpoint", "5", "--out", "/fsx/checkpoints/mine")
    assert (code, said.splitlines()[0]) == (
        0,
        "Job 31: weights of titan/my-titan at step 5, into /fsx/checkpoints/mine",
    )
    assert "--nodes=1" in run.called("sbatch")[0]


@pytest.mark.slow
def test_what_cannot_be_exported_is_not_submitted(run: PlayedCluster, call: Call) -> None:
    for arguments, code, sentence in (
        (("nothing",), 2, 'There is no run "nothing" on '),
        (("my-titan", "--checkpoint", "7"), 2, "has no checkpoint of step 7.\n  allowed: 5, 10"),
        (("my-titan", "--checkpoint", "0"), 2, "Invalid value"),
        (("my-titan", "--out", "weights"), 2, "not a folder of the cluster's file system"),
        (("my-titan", "--out", "/fsx/../etc"), 2, "not a folder of the cluster's file system"),
        (("my-gpt2",), 1, "Nothing exports runs of gpt2"),
        (("my-titan", "--nodes", "9"), 1, "allowed: 1 to 4"),
        (("my-titan", "--follow", "--json"), 2, "give one of them"),
    ):
        ended, _, said = call("export", *arguments)
        assert (ended, sentence in said) == (code, True), said
        assert not run.called("sbatch")
