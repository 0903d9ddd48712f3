"""89-await-fabric.sh: a node's start waits for the GPUs' fabric, for a bounded time."""

from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import fabric_report, link_report
from tests.unit.assets.bootstrap.start_step_node import Node

WAITS = fabric_report(["In Progress,N/A,N/A"] * 8)
READY = fabric_report(["Completed,Success,N/A"] * 8)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    (node.etc / "partitions" / "gpu.env").write_text("export ACCELERATORS_PER_NODE='8'\n")
    (tmp_path / "links").write_text(link_report([[True] * 18] * 8))
    node.stub("python3")
    node.stub("sleep", f"echo >>{tmp_path}/slept")
    return node


def answer(node: Node, tmp_path: Path, *, waits: int) -> None:
    """Let the first `waits` reports say that the fabric is not ready, and later ones that it is."""
    (tmp_path / "waits").write_text(WAITS)
    (tmp_path / "ready").write_text(READY)
    node.stub(
        "nvidia-smi",
        f'case "$1" in\n-q) n=$(cat {tmp_path}/asked 2>/dev/null | wc -l); echo >>{tmp_path}/asked\n'
        f"if [ $n -lt {waits} ]; then cat {tmp_path}/waits; else cat {tmp_path}/ready; fi ;;\n"
        f"nvlink) cat {tmp_path}/links ;;\n--query-gpu=*) echo Disabled ;;\nesac",
    )


def test_a_start_waits_until_the_fabric_is_ready(node: Node, tmp_path: Path) -> None:
    answer(node, tmp_path, waits=3)
    done = node.run("89", recipe="gpu", partition="gpu")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "slept").read_text().count("\n") == 3
    assert "the fabric is ready, after " in done.stderr


def test_a_ready_fabric_is_not_waited_for(node: Node, tmp_path: Path) -> None:
    answer(node, tmp_path, waits=0)
    assert node.run("89", recipe="gpu", partition="gpu").returncode == 0
    assert not (tmp_path / "slept").exists()


def test_a_start_goes_on_without_the_fabric_and_says_why(node: Node, tmp_path: Path) -> None:
    answer(node, tmp_path, waits=99)
    done = node.run("89", recipe="gpu", partition="gpu", FABRIC_WAIT_S="1")
    assert done.returncode == 1
    assert "the fabric of the GPU 00000000:00:00.0 is not ready (In Progress): CUDA ends" in done.stderr


def test_cuda_that_is_not_ready_is_waited_for_where_the_driver_reports_no_fabric(
    node: Node, tmp_path: Path
) -> None:
    answer(node, tmp_path, waits=0)
    first = (
        f"if [ ! -e {tmp_path}/slept ]; then echo 'error 802 (the NVLink fabric is not ready)'; exit 9; fi"
    )
    node.stub("python3", first)
    assert node.run("89", recipe="gpu", partition="gpu").returncode == 0
    assert (tmp_path / "slept").exists()


def test_another_fault_of_a_gpu_keeps_no_start_waiting(node: Node, tmp_path: Path) -> None:
    answer(node, tmp_path, waits=0)
    node.stub("python3", "echo 'CUDA sees 7 of 8 GPUs'; exit 9")
    assert node.run("89", recipe="gpu", partition="gpu").returncode == 0
    assert not (tmp_path / "slept").exists()


def test_on_a_running_node_a_job_waits_for_nothing(node: Node, tmp_path: Path) -> None:
    answer(node, tmp_path, waits=99)
    assert node.run("89", recipe="gpu", partition="gpu", BOOTSTRAP_MOMENT="refresh").returncode == 0
    assert not (tmp_path / "asked").exists()
