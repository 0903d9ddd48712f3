"""The sweep's verdicts on nodes: broken alone, slow in pairs, undecided."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from training_cluster.paths import TRAINING

NODES = [f"gpu-{n}" for n in range(1, 9)]
BASE = {"RUN_DIR": "/nowhere", "NPROC_PER_NODE": "8", "ACCELERATOR_KIND": "gpu"}


@pytest.fixture(scope="module")
def program() -> ModuleType:
    folder = TRAINING / "nccl-tests"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("sweep", folder / "sweep.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["sweep"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def swept(
    program: ModuleType,
    nodes: Sequence[str],
    *,
    broken: Sequence[str] = (),
    slow: Sequence[str] = (),
    between: Sequence[set[str]] = (),
) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """Sweep nodes of which some are broken alone, slow in pairs, or slow between each other."""
    asked: list[tuple[str, ...]] = []

    class Played(program.Sweep):  # type: ignore[misc,name-defined]
        def _measure(self, group: tuple[str, ...], _number: int) -> Any:
            asked.append(group)
            if set(group) & set(broken):
                return program.Measured(group, None, "exit code 1: no GPU here")
            if len(group) == 1:
                return program.Measured(group, 200.0)
            is_slow = set(group) & set(slow) or set(group) in between
            return program.Measured(group, 10.0 if is_slow else 45.0)

    verdicts = program.sweep(nodes, Played(BASE))
    assert [each.node for each in verdicts] == list(nodes)
    return {each.node: each for each in verdicts}, asked


def bad(verdicts: dict[str, Any]) -> set[str]:
    return {node for node, each in verdicts.items() if each.reason}


def test_good_nodes_are_called_good(program: ModuleType) -> None:
    for count in (1, 2, 3, 7, 8):
        verdicts, asked = swept(program, NODES[:count])
        assert bad(verdicts) == set()
        assert [each.note for each in verdicts.values()] == [""] * count
        paired = {node for group in asked for node in group if len(group) == 2}
        assert paired == set(NODES[: count if count > 1 else 0])


def test_a_broken_node_is_in_no_pair(program: ModuleType) -> None:
    verdicts, asked = swept(program, NODES, broken=["gpu-3"])
    assert (bad(verdicts), verdicts["gpu-3"].reason) == ({"gpu-3"}, "alone: exit code 1: no GPU here")
    assert [group for group in asked if "gpu-3" in group] == [("gpu-3",)]


def test_the_slow_node_of_a_pair_is_found(program: ModuleType) -> None:
    for slow in (["gpu-1"], ["gpu-8"], ["gpu-2", "gpu-5"], ["gpu-3", "gpu-4"]):
        verdicts, _ = swept(program, NODES, slow=slow)
        assert bad(verdicts) == set(slow)
        assert all("10 GB/s, where 45 is usual" in verdicts[node].reason for node in slow)
    verdicts, _ = swept(program, NODES[:3], slow=["gpu-3"])
    assert program.table(list(verdicts.values())).splitlines() == [
        "node   alone GB/s  pair GB/s  verdict",
        "gpu-1         200         45  good",
        "gpu-2         200         45  good",
        "gpu-3         200         10  BAD, with gpu-2: 10 GB/s, where 45 is usual",
    ]


def test_two_nodes_slow_between_each_other_are_undecided(program: ModuleType) -> None:
    verdicts, _ = swept(program, NODES, between=[{"gpu-3", "gpu-4"}])
    assert bad(verdicts) == set()
    assert "its first pair was not: 10 GB/s" in verdicts["gpu-3"].note


def test_without_a_good_pair_no_node_is_blamed(program: ModuleType) -> None:
    class Floors(program.Sweep):  # type: ignore[misc,name-defined]
        def _measure(self, group: tuple[str, ...], _number: int) -> Any:
            return program.Measured(group, 10.0, "too slow: 10 GB/s" if len(group) > 1 else "")

    verdicts = program.sweep(NODES[:4], Floors(BASE))
    assert [each.reason for each in verdicts] == [""] * 4
    assert all(each.note == "no good pair to compare with: too slow: 10 GB/s" for each in verdicts)


@pytest.mark.parametrize(("state", "reason"), [("COMPLETING", "none"), ("RUNNING", "EC2 takes it: spot")])
def test_a_sweep_that_is_cancelled_names_no_node(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, reason: str
) -> None:
    for name, line in {
        "srun": "exit 143",
        "sinfo": f"echo {reason}",
        "squeue": f"echo {state}",
        "scontrol": "if [ $2 = hostnames ]; then printf 'gpu-1\\ngpu-2\\n'; else echo 'x NodeAddr=::1'; fi",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    job = BASE | {"THIS_JOB": "7", "SLURM_JOB_NODELIST": "gpu-[1-2]", "MASTER_PORT": "12007"}
    job |= {"RUN_DIR": str(tmp_path)}
    job |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "NCCL_FLOORS": "", "EFA_INTERFACES": "0"}
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["sweep.py"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 143
    assert not (tmp_path / "sweep.json").exists()
