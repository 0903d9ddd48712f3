"""check-node.sh: which checks it runs, and what it makes of those that fail, hang or are faulty."""

import shutil
import time
from pathlib import Path

import psutil
import pytest

from tests.unit.assets.bootstrap.health.health_node import (
    UNHEALTHY,
    HealthNode,
    check,
    found,
    gpu_node,
    smi,
)
from training_cluster.catalog.families import family_names
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.rules.context import read_settings

READ_BY_CHECKS = {"ACCELERATOR_KIND", "ACCELERATORS_PER_NODE", "EFA_INTERFACES", "SCRATCH"}


def test_a_node_without_accelerators_needs_none(tmp_path: Path) -> None:
    node = HealthNode(tmp_path, family="m6i")
    node.be_well()
    for program in ("nvidia-smi", "fi_info", "journalctl", "mountpoint"):
        node.stub(program, "exit 1")
    assert check(node).returncode == 0
    assert node.called() == ["chronyc -n -c tracking"]


def test_all_that_is_wrong_is_reported(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    smi(node, gpus=7)
    node.stub("mountpoint", "exit 32")
    assert found(node) == ("nvidia-smi lists 7 of 8 GPUs; the local NVMe disks are not mounted on /scratch")


@pytest.mark.slow
def test_a_program_that_hangs_is_a_verdict(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    # No signal ends a program that waits for a lost GPU; one that ignores all but SIGKILL comes near.
    node.stub("nvidia-smi", "trap '' TERM; exec sleep 20.0625")
    started = time.monotonic()
    done = check(node, HEALTH_LIMIT_S="1")
    assert time.monotonic() - started < 8
    assert done.returncode == UNHEALTHY
    assert "the check 10-gpus did not end within 1 s" in done.stdout
    assert [p for p in psutil.process_iter(["cmdline"]) if "20.0625" in (p.info["cmdline"] or [])] == []


def test_a_faulty_check_is_no_verdict(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.stub("chronyc", "echo 'a new release prints it otherwise'")
    node.stub("journalctl", "echo 'unknown option' >&2; exit 1")
    done = check(node)
    assert done.returncode == 0
    assert "60-clock: could not check (1)" in done.stderr
    assert "20-gpu-xid: could not check (1): unknown option" in done.stderr


def test_checks_write_where_no_job_writes(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    memory = node.root / "run"
    memory.mkdir()
    node.stub("mktemp", f'exec {shutil.which("mktemp")} "$@"')
    assert check(node).returncode == 0
    assert f"mktemp -d -p {memory} training-cluster-health-XXXXXX" in node.called()
    assert list(memory.iterdir()) == []


def test_checks_without_room_are_no_verdict(tmp_path: Path) -> None:
    """A training that was killed leaves its shared tensors in /dev/shm, and may fill it."""
    node = gpu_node(tmp_path)
    node.stub("mktemp", f"echo {tmp_path}/nowhere")
    done = check(node, HEALTH_LIMIT_S="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot write to /dev/shm: nothing was checked" in done.stderr


def test_the_head_node_switches_a_check_off(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.stub("chronyc", "exit 1")
    assert check(node).returncode == UNHEALTHY
    skipped = node.root / "opt" / "slurm" / "etc" / "training-cluster-skipped-checks"
    skipped.parent.mkdir(parents=True)
    skipped.write_text("60-clock\n")
    done = check(node)
    assert done.returncode == 0
    assert f"60-clock: not checked, {skipped} names it" in done.stderr


def test_a_rehearsals_node_needs_no_hardware(tmp_path: Path) -> None:
    node = HealthNode(tmp_path, family="p5")
    (node.root / "etc" / "parallelcluster" / "cfnconfig").unlink()
    done = check(node)
    assert done.returncode == 0, done
    assert "10-gpus: not checked, this is no ParallelCluster node" in done.stderr
    node.stub("df", "printf ' Avail\\n   17\\n'")
    assert check(node).returncode == UNHEALTHY


def test_every_partition_tells_what_checks_ask() -> None:
    for family in family_names():
        for text in render_job_environments(read_settings({"family": family})).values():
            assert {name for name in READ_BY_CHECKS if f"export {name}='" not in text} == set(), family
