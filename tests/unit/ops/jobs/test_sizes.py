"""A run that the file system cannot hold is refused before nodes start; what takes long is told."""

import re

import pytest

from tests.unit.ops.jobs_head_node import Call, PlayedCluster

FACTS = {
    "ACCELERATOR_KIND": "gpu",
    "ACCELERATOR_MEMORY_GIB": "80.0",
    "ACCELERATOR_PEAK_TFLOPS": "989",
    "RANKS_PER_NODE": "8",
    "SHARED_MBPS": "292",
    "SHARED_READ_MBPS": "750",
}
JOB = ("submit", "titan", "--nodes", "4", "--set", "SIZE=70B")
TIB = 2**40


@pytest.fixture
def of_p5(cluster: PlayedCluster) -> PlayedCluster:
    cluster.has_workload("titan")
    cluster.has_nodes("p5.48xlarge", recipe="gpu", **FACTS)
    cluster.says("sbatch", "7\n")
    return cluster


def has_disk(cluster: PlayedCluster, size: float, free: float) -> None:
    cluster.says("df", f"1B-blocks Avail\n{size * TIB:.0f} {free * TIB:.0f}\n")


def test_a_run_that_cannot_save_is_refused(of_p5: PlayedCluster, call: Call) -> None:
    has_disk(of_p5, 1.1, 1.1)
    code, _, said = call(*JOB)
    assert code == 1
    assert (
        "The run could not save: a checkpoint has 846.6 GB: the 1,126 GiB of Lustre have room for 1" in said
    )
    assert "deploy --cluster traincluster -c fsx_gib=" in said
    assert not of_p5.called("sbatch")


def test_a_slow_save_is_a_note(of_p5: PlayedCluster, call: Call) -> None:
    has_disk(of_p5, 4, 2)
    code, said, _ = call(*JOB)
    assert code == 0
    assert "a save takes 48 min at 292 MB/s" in said
    assert "for saves in 5% of the time: trainctl deploy --cluster traincluster -c fsx_gib=" in said
    assert "fsx_mbps_per_tib" not in said, "the guard refuses two changes of Lustre at once"
    assert "or, at no cost" not in said, "the run ends before"
    assert "or, at no cost, CHECKPOINT_EVERY=" in call(*JOB, "--set", "MAX_STEPS=1000000")[1]
    assert "free: make room" not in said
    has_disk(of_p5, 4, 1)
    assert "Lustre has 1,024 GiB free: make room" in call(*JOB)[1]


def test_lustre_with_efa_grows_by_its_step(
    of_p5: PlayedCluster, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"fsx_efa": "on", "fsx_mbps_per_tib": "125"}
    monkeypatch.setattr("ops.jobs.sizes.flags_or_none", lambda *_: flags)
    has_disk(of_p5, 4, 4)
    (gib,) = re.findall(r"-c fsx_gib=(\d+)", call(*JOB)[1])
    assert int(gib) % 38400 == 0


def test_an_existing_file_system_grows_by_its_owner(of_p5: PlayedCluster, call: Call) -> None:
    of_p5.has_nodes("p5.48xlarge", recipe="gpu", **FACTS | {"SHARED_MBPS": "", "SHARED_READ_MBPS": ""})
    has_disk(of_p5, 1.1, 1.1)
    code, _, said = call(*JOB)
    assert code == 1
    assert "aws fsx update-file-system --file-system-id ... --storage-capacity 2400\n" in said
    assert "deploy" not in said, "with fsx_id, fsx_gib is refused"


def test_an_image_for_many_nodes_is_a_note(of_p5: PlayedCluster, call: Call) -> None:
    """Nodes without local disks, to which Slurm cannot copy an image."""
    has_disk(of_p5, 4, 4)
    of_p5.says("sinfo", "gpu*|up|idle~|64|gpu-dy-p5-[1-64]|Unknown|none\n")
    image = ("--container", "nvcr.io/nvidia/pytorch:25.09-py3")
    code, said, _ = call("submit", "titan", "--nodes", "64", "--set", "SIZE=8B", *image)
    assert code == 0
    assert "64 nodes without local disks that each read an image or environment of 20 GB (assumed)" in said
