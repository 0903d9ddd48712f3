"""check-node.sh with checks of the tests: which it runs, and what it makes of odd ones."""

import shutil
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY
from tests.unit.assets.bootstrap.step_machine import Machine


class CheckedNode(Machine):
    """A ParallelCluster node with GPUs, and a bundle without checks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.health = self.root / "health"
        (self.health / "checks").mkdir(parents=True)
        for name in ("check-node.sh", "drain_limit.sh", "verdict.sh", "gpu_cuda.py"):
            shutil.copy(HEALTH / name, self.health)
        self.write("etc/partitions/gpu.env", "export ACCELERATOR_KIND=gpu\n")
        self.write("etc/parallelcluster/cfnconfig", "")
        (self.root / "run").mkdir()

    def has(self, name: str, script: str, *, kinds: str = "gpu") -> None:
        """Give the bundle a check."""
        self.write(f"health/checks/{name}.sh", f"#!/bin/bash\n# Kinds: {kinds}\n{script}\n")

    def finds(self, name: str, sentence: str) -> None:
        """Give the bundle a check that reports the node as unhealthy."""
        self.has(name, f"echo '{sentence}'; exit {UNHEALTHY}")

    def check(self, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {"TRAINING_ROOT": str(self.root), "TRAINING_ETC": str(self.root / "etc")} | environment
        command = ["/bin/bash", str(self.health / "check-node.sh"), "gpu"]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def node(tmp_path: Path) -> CheckedNode:
    return CheckedNode(tmp_path)


def test_only_checks_of_the_nodes_kind_run(node: CheckedNode) -> None:
    """All that is wrong is reported, in the order of the checks."""
    node.finds("30-links", "a link is down")
    node.finds("10-gpus", "a GPU is lost")
    for name, kinds in {"20-neuron": "neuron none", "25-gpus": "neuron gpu", "40-efa": "all"}.items():
        node.has(name, f"echo {name}; exit 9", kinds=kinds)
    done = node.check()
    assert (done.returncode, done.stderr) == (UNHEALTHY, "")
    assert done.stdout == "a GPU is lost; 25-gpus; a link is down; 40-efa\n"
    node.write("etc/partitions/gpu.env", "export ACCELERATOR_KIND=none\n")
    assert node.check().stdout == "20-neuron; 40-efa\n"


@pytest.mark.slow
def test_a_program_that_hangs_is_a_verdict(node: CheckedNode) -> None:
    # No signal ends a program that waits for a lost GPU; one that ignores all but SIGKILL comes near.
    node.has("10-gpus", "# Limit: 1 s\ntrap '' TERM; sleep 20.0625")
    started = time.monotonic()
    done = node.check()
    assert time.monotonic() - started < 8
    assert done.returncode == UNHEALTHY
    assert "the check 10-gpus did not end within 1 s" in done.stdout
    assert [p for p in psutil.process_iter(["cmdline"]) if "20.0625" in (p.info["cmdline"] or [])] == []


def test_a_faulty_check_is_no_verdict(node: CheckedNode) -> None:
    node.has("60-clock", "a_new_release_prints_it_otherwise")
    node.has("20-gpu-xid", "echo 'unknown option' >&2; exit 1")
    done = node.check()
    assert (done.returncode, done.stdout) == (0, "")
    assert "60-clock: could not check (127)" in done.stderr
    assert "20-gpu-xid: could not check (1): unknown option\n" in done.stderr


def test_checks_write_where_no_job_writes(node: CheckedNode) -> None:
    """A training that was killed leaves its shared tensors in /dev/shm, and may fill it."""
    node.program("usr/bin/mktemp", 'exec /bin/mktemp "$@"')
    assert node.check().returncode == 0
    memory = node.root / "run"
    assert node.called() == [f"mktemp -d -p {memory} training-cluster-health-XXXXXX"]
    assert list(memory.iterdir()) == []
    node.program("usr/bin/mktemp", "echo /nowhere")
    done = node.check(HEALTH_LIMIT_S="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot write to {memory}: nothing was checked" in done.stderr


def test_the_head_node_switches_a_check_off(node: CheckedNode) -> None:
    node.finds("60-clock", "the clock is wrong")
    assert node.check().returncode == UNHEALTHY
    skipped = node.write("opt/slurm/etc/training-cluster-skipped-checks", "60-clock\n")
    done = node.check()
    assert (done.returncode, done.stderr) == (0, f"60-clock: not checked, {skipped} names it\n")


def test_a_rehearsals_node_needs_no_hardware(node: CheckedNode) -> None:
    (node.root / "etc" / "parallelcluster" / "cfnconfig").unlink()
    node.finds("10-gpus", "a GPU is lost")
    done = node.check()
    assert (done.returncode, done.stderr) == (0, "10-gpus: not checked, this is no ParallelCluster node\n")
    node.has("70-root-disk", "# Where: any\necho full; exit 9")
    assert node.check().returncode == UNHEALTHY
