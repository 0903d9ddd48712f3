"""The bundle of scripts: its bytes depend on content alone, and a family's environment is in it."""

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from training_cluster.catalog.families import family_names
from training_cluster.cluster.bundle import build_bundle
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings


def _open(bundle: bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(bundle), mode="r:gz")


def test_the_same_content_is_the_same_bundle_wherever_and_whenever(tmp_path: Path) -> None:
    settings = read_settings({})
    copy = shutil.copytree(ASSETS, tmp_path / "assets")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    bundle = build_bundle(settings=settings, assets=copy)
    assert bundle == build_bundle(settings=settings)
    assert bundle[4:8] == bytes(4), "gzip's header holds the time of day"


def test_another_script_or_family_is_another_bundle(tmp_path: Path) -> None:
    copy = shutil.copytree(ASSETS, tmp_path / "assets")
    (copy / "training" / "job.slurm").write_text("#!/bin/bash\n")
    bundles = {
        build_bundle(settings=read_settings({})),
        build_bundle(settings=read_settings({"family": "m6i"})),
        build_bundle(settings=read_settings({}), assets=copy),
    }
    assert len(bundles) == 3


def test_the_bundle_holds_the_scripts_with_their_modes() -> None:
    with _open(build_bundle(settings=read_settings({}))) as archive:
        names = set(archive.getnames())
        assert {
            "bootstrap/bootstrap.sh",
            "training/job.slurm",
            "training/gpt2/train.sh",
            "partitions/gpu.env",
        } <= names
        assert archive.getmember("bootstrap/bootstrap.sh").mode == 0o755
        assert archive.getmember("partitions/gpu.env").mode == 0o644
        assert not [name for name in names if "__pycache__" in name]


def test_what_tools_leave_in_the_folders_does_not_ship(tmp_path: Path) -> None:
    settings, copy = read_settings({}), shutil.copytree(ASSETS, tmp_path / "assets")
    for name in (".mypy_cache/3.11/a.json", "__pycache__/a.pyc", ".DS_Store"):
        path = copy / "training" / "gpt2" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left")
    assert build_bundle(settings=settings, assets=copy) == build_bundle(settings=settings)


def _sourced(environment: str, *names: str) -> list[str]:
    words = " ".join(f'"${name}"' for name in names)
    done = subprocess.run(
        ["bash", "-euc", f'{environment}\nprintf "%s|" {words}'], capture_output=True, text=True, check=True
    )
    return done.stdout.split("|")[:-1]


def test_a_shell_reads_the_environment_of_a_partition() -> None:
    text = render_job_environments(read_settings({}))["gpu"]
    assert _sourced(text, "FAMILY", "ACCELERATORS_PER_NODE", "RANKS_PER_NODE", "NCCL_SOCKET_IFNAME") == [
        "p4d",
        "8",
        "8",
        "^docker,lo,veth",
    ]


def test_ranks_a_node_are_gpus_neuron_cores_or_one() -> None:
    """Trainium's as in aws-neuron-sdk, archive/nxd-training/mlp.rst; on trn2 two cores are a logical one."""
    ranks = {
        size: _sourced(
            *render_job_environments(read_settings({"family": family, "instance_type": size})).values(),
            "RANKS_PER_NODE",
        )[0]
        for family, size in (
            ("p5", "p5.48xlarge"),
            ("trn1", "trn1.2xlarge"),
            ("trn1", "trn1.32xlarge"),
            ("trn1n", "trn1n.32xlarge"),
            ("trn2", "trn2.3xlarge"),
            ("trn2", "trn2.48xlarge"),
            ("m6i", "m6i.32xlarge"),
        )
    }
    assert list(ranks.values()) == ["8", "2", "32", "32", "4", "64", "1"]


def test_each_partition_has_its_own_environment() -> None:
    found = render_job_environments(read_settings({"cpu_queue": "on"}))
    assert {name: _sourced(text, "FAMILY", "RANKS_PER_NODE") for name, text in found.items()} == {
        "gpu": ["p4d", "8"],
        "cpu": ["m6i", "1"],
    }


@pytest.mark.parametrize("family", family_names())
def test_no_job_gets_a_variable_that_is_dead_or_harmful(family: str) -> None:
    """The list stands in facts/workloads.md: settings of the seeds that no current stack wants."""
    for text in render_job_environments(read_settings({"family": family})).values():
        for name in (
            "NCCL_TREE_THRESHOLD",
            "FI_EFA_USE_DEVICE_RDMA",
            "FI_EFA_TX_MIN_CREDITS",
            "FI_PROVIDER",
            "XLA_USE_BF16",
            "=eth0",
            "LD_LIBRARY_PATH",
        ):
            assert name not in text
