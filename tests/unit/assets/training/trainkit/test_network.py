"""The ranks' report of their network after the first step, with NCCL's lines from a file."""

import dataclasses
import itertools
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.assets.training.trainkit.run.runs import a_run
from training_cluster.paths import TRAINING

sys.path.insert(0, str(TRAINING))
try:
    from trainkit import network
finally:
    sys.path.remove(str(TRAINING))

LOGS = Path(__file__).parents[1] / "nccl_tests" / "logs"
TCP = "NCCL sends over TCP (NET/Socket) on node, and these nodes have 4 EFA cards each: "


def start(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    rank: int = 0,
    local_rank: int | None = None,
    log: str = "bad-efa-unused",
) -> Path:
    """Start a rank of two nodes; the recording one writes NCCL's lines. Return the run's folder."""
    job = {"NNODES": "2", "SLURM_JOB_ID": "7", "EFA_INTERFACES": "4", "SLURMD_NODENAME": "node"}
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    for name in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"):
        monkeypatch.setenv(name, "")  # so that what is recorded is gone after the test
        monkeypatch.delenv(name)
    run = dataclasses.replace(a_run(root, rank=rank), local_rank=rank if local_rank is None else local_rank)
    network.record(run)
    if "NCCL_DEBUG_FILE" in os.environ:
        shutil.copyfile(LOGS / f"{log}.log", os.environ["NCCL_DEBUG_FILE"])
    return run.run_dir


def test_tcp_between_nodes_with_efa_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = start(tmp_path, monkeypatch)
    network.report()
    assert capsys.readouterr().out.startswith(f"WARNING: {TCP}")
    assert (run_dir / "network.json").is_file()
    assert not (run_dir / "outcome").exists()


def test_efa_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path, monkeypatch, log="good-p4d-2-nodes")
    network.report()
    assert capsys.readouterr().out == "network between the nodes: Libfabric\n"


def test_a_strict_run_ends_with_the_reason_as_its_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = start(tmp_path, monkeypatch)
    monkeypatch.setenv("STRICT_NETWORK", "1")
    with pytest.raises(SystemExit) as ended:
        network.report()
    assert TCP in str(ended.value)
    assert str(ended.value).endswith("The run ends, since STRICT_NETWORK is 1.")
    assert (run_dir / "outcome").read_text().startswith(f"refused {TCP}")


def test_other_ranks_record_and_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STRICT_NETWORK", "1")
    run_dir = start(tmp_path, monkeypatch, rank=1)
    network.report()
    assert capsys.readouterr().out == ""
    assert not list(run_dir.iterdir())


def test_a_rank_that_records_on_another_node_flushes_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(network, "sync", flushed.append)
    start(tmp_path, monkeypatch, rank=1, local_rank=0)
    network.report()
    assert flushed == [Path(os.environ["NCCL_DEBUG_FILE"])]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("good-p4d-2-nodes", ""),
        ("bad-efa-unused", "NCCL sends over TCP (NET/Socket) on other, and these nodes have 4 EFA cards"),
    ],
)
def test_a_strict_run_is_judged_by_the_lines_of_a_node_that_come_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, said: str
) -> None:
    run_dir = start(tmp_path, monkeypatch, log="good-p4d-2-nodes")
    monkeypatch.setenv("STRICT_NETWORK", "1")
    late = Path(os.environ["NCCL_DEBUG_FILE"]).with_name("other.log")
    looks: list[Callable[[], object]] = [late.touch, lambda: shutil.copyfile(LOGS / f"{log}.log", late)]
    time = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: looks.pop(0)())
    monkeypatch.setattr(network, "time", time)
    if said:
        with pytest.raises(SystemExit, match=re.escape(said)):
            network.report()
    else:
        network.report()
    assert not looks
    assert (run_dir / "outcome").exists() == bool(said)


def test_a_strict_run_does_not_wait_for_ever_for_a_node_that_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, monkeypatch, log="good-p4d-2-nodes")
    monkeypatch.setenv("STRICT_NETWORK", "1")
    clock = itertools.count(step=50.0)
    time = SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None)
    monkeypatch.setattr(network, "time", time)
    with pytest.raises(SystemExit, match=r"not written which network it takes on 1 of 2 nodes\."):
        network.report()
    assert next(clock) == 200.0, "it looked until 120 s had passed"
