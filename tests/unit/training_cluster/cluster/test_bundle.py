"""The bundle of scripts: its bytes depend on content alone, and a partition's environment is in it."""

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from training_cluster.catalog.families import family_names
from training_cluster.cluster.bundle import build_bundle
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings


def test_the_same_content_is_the_same_bundle(tmp_path: Path) -> None:
    """Wherever and whenever it is made, and whatever tools leave in the folders."""
    copy = shutil.copytree(ASSETS, tmp_path / "assets")
    for name in (".mypy_cache/3.11/a.json", "__pycache__/a.pyc", ".DS_Store"):
        path = copy / "training" / "gpt2" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    settings = read_settings({})
    bundle = build_bundle(settings=settings, assets=copy)
    assert bundle == build_bundle(settings=settings)
    assert bundle[4:8] == bytes(4), "gzip's header holds the time of day"
    assert bundle != build_bundle(settings=read_settings({"family": "m6i"}))
    (copy / "training" / "job.slurm").write_text("#!/bin/bash\n")
    assert bundle != build_bundle(settings=settings, assets=copy)


def test_the_bundle_holds_the_scripts_with_their_modes() -> None:
    bundle = build_bundle(settings=read_settings({}))
    with tarfile.open(fileobj=io.BytesIO(bundle), mode="r:gz") as archive:
        assert {"training/job.slurm", "training/gpt2/train.sh"} <= set(archive.getnames())
        assert archive.getmember("bootstrap/bootstrap.sh").mode == 0o755
        assert archive.getmember("partitions/gpu.env").mode == 0o644


def test_a_shell_reads_the_environment_of_a_partition() -> None:
    text = render_job_environments(read_settings({}))["gpu"]
    script = f'{text}\necho "$FAMILY $ACCELERATORS_PER_NODE $RANKS_PER_NODE $NCCL_SOCKET_IFNAME"'
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["p4d", "8", "8", "^docker,lo,veth"]


def test_no_job_gets_a_variable_that_is_harmful() -> None:
    """Settings of the seeds that no current stack wants."""
    dead = ("NCCL_TREE_THRESHOLD", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_TX_MIN_CREDITS", "FI_PROVIDER")
    for family in family_names():
        for text in render_job_environments(read_settings({"family": family})).values():
            for name in (*dead, "XLA_USE_BF16", "=eth0", "LD_LIBRARY_PATH"):
                assert name not in text
