"""The ranks' report of their network after the first step, with NCCL's lines from files."""

import dataclasses
import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from trainkit import nccl, network
from trainkit.run import report

from ops.report.record import unpack
from ops.report.tables import summary_table, warnings_of
from tests.unit.assets.training.trainkit.run.runs import a_run, row

LOGS = Path(__file__).parents[1] / "nccl_tests" / "logs"
TCP = "NCCL sends over TCP (NET/Socket) on node, and these nodes have 4 EFA cards each: "
Recorded = Callable[..., nccl.Network]
JOB = {"NNODES": "2", "SLURM_JOB_ID": "7", "EFA_INTERFACES": "4"}


def start(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    rank: int = 0,
    local_rank: int | None = None,
    log: str = "bad-efa-unused",
    **env: str,
) -> Path:
    """Start a rank of two nodes; the recording one writes NCCL's lines. Return the run's folder."""
    for name in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"):
        monkeypatch.setenv(name, "")  # so that what is recorded is gone after the test
        monkeypatch.delenv(name)
    for name, value in (JOB | {"SLURMD_NODENAME": "node"} | env).items():
        monkeypatch.setenv(name, value)
    run = dataclasses.replace(a_run(root, rank=rank), local_rank=rank if local_rank is None else local_rank)
    network.record(run)
    if "NCCL_DEBUG_FILE" in os.environ:
        shutil.copyfile(LOGS / f"{log}.log", os.environ["NCCL_DEBUG_FILE"])
    return run.run_dir


def test_tcp_between_nodes_with_efa_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path / "efa", monkeypatch, log="good-p4d-2-nodes")
    network.report()
    assert capsys.readouterr().out == "network between the nodes: Libfabric\n"
    run_dir = start(tmp_path, monkeypatch)
    network.report()
    assert capsys.readouterr().out.startswith(f"WARNING: {TCP}")
    assert (run_dir / "network.json").is_file()
    assert not (run_dir / "outcome").exists()
    monkeypatch.setenv("STRICT_NETWORK", "1")
    with pytest.raises(SystemExit) as ended:
        network.report()
    assert TCP in str(ended.value)
    assert str(ended.value).endswith("The run ends, since STRICT_NETWORK is 1.")
    assert (run_dir / "outcome").read_text().startswith(f"refused {TCP}")


def test_other_ranks_record_and_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(network, "sync", flushed.append)
    monkeypatch.setenv("STRICT_NETWORK", "1")
    run_dir = start(tmp_path, monkeypatch, rank=1)
    network.report()
    assert not list(run_dir.iterdir())
    start(tmp_path, monkeypatch, rank=1, local_rank=0)
    network.report()
    assert flushed == [Path(os.environ["NCCL_DEBUG_FILE"])], "the first rank of a node records"
    assert capsys.readouterr().out == ""


def test_a_strict_run_waits_for_late_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = start(tmp_path, monkeypatch, log="good-p4d-2-nodes")
    monkeypatch.setenv("STRICT_NETWORK", "1")
    late = Path(os.environ["NCCL_DEBUG_FILE"]).with_name("other.log")
    bad = LOGS / "bad-efa-unused.log"
    looks: list[Callable[[], object]] = [late.touch, lambda: shutil.copyfile(bad, late)]
    time = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: looks.pop(0)())
    monkeypatch.setattr(network, "time", time)
    with pytest.raises(SystemExit, match=r"TCP \(NET/Socket\) on other, and these nodes have 4 EFA cards"):
        network.report()
    assert not looks
    assert (run_dir / "outcome").exists()


def test_a_strict_run_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path, monkeypatch, log="good-p4d-2-nodes")
    monkeypatch.setenv("STRICT_NETWORK", "1")
    clock = itertools.count(step=50.0)
    time = SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None)
    monkeypatch.setattr(network, "time", time)
    with pytest.raises(SystemExit, match=r"not written which network it takes on 1 of 2 nodes\."):
        network.report()
    assert next(clock) == 200.0, "it looked until 120 s had passed"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Reads the network of nodes of a job, each with lines of its own or a recorded log."""
    folders = itertools.count()
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)

    def read(**logs: str) -> nccl.Network:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        for host, log in logs.items():
            file = LOGS / f"{log}.log"
            text = file.read_text() if " " not in log else f"{host}:1:2 [0] NCCL INFO {log}\n"
            (folder / f"{host}.log").write_text(text)
        return nccl.read(folder)

    return read


def test_each_node_of_several_records_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path, monkeypatch, NNODES="1")
    assert "NCCL_DEBUG_FILE" not in os.environ
    start(tmp_path, monkeypatch, NCCL_DEBUG="WARN")
    assert "NCCL_DEBUG_FILE" not in os.environ
    run_dir = start(tmp_path, monkeypatch)
    assert Path(os.environ["NCCL_DEBUG_FILE"]) == run_dir / "network" / "7-0" / "node.log"
    assert (os.environ["NCCL_DEBUG"], os.environ["NCCL_DEBUG_SUBSYS"]) == ("INFO", "INIT,NET")


def test_a_node_that_sends_over_tcp_is_named(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    good = recorded(one="good-p4d-2-nodes", two="good-p4d-2-nodes")
    assert (good.names, good.providers, good.nics, good.on_tcp) == (["Libfabric"], ("efa",), (4,), [])
    assert network.complaint_of(good) == ""
    bad = recorded(one="good-p4d-2-nodes", two="bad-efa-unused")
    assert bad.on_tcp == ["two"]
    said = "NCCL sends over TCP (NET/Socket) on two, and these nodes have"
    assert network.complaint_of(bad).startswith(said)
    tcp = recorded(one="good-p4d-2-nodes", two="bad-provider-tcp")
    assert (tcp.names, tcp.on_tcp) == (["Libfabric", "Libfabric (tcp)"], ["two"])
    assert network.complaint_of(tcp).startswith("NCCL sends over TCP (NET/Libfabric (tcp)) on two, and ")
    monkeypatch.setenv("EFA_INTERFACES", "0")
    assert network.complaint_of(bad) == "", "TCP is all that such nodes have"


@pytest.mark.parametrize(
    ("line", "is_tcp"),
    [
        ("NET/OFI Selected Provider is efa (found 16 nics)", False),  # aws-ofi-nccl 1.14
        ("NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)", False),
        ("NET/OFI Selected provider is tcp, fabric is 172.31.32.0/20 (found 1 nics)", True),
        ("NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)", True),
        # Of a rank without a connection to another node: other GPUs may be nearer to the cards.
        ("Using network Socket", True),
        ("Assigned NET plugin Socket to comm", True),
    ],
)
def test_lines_of_each_plugin_are_read(recorded: Recorded, line: str, is_tcp: bool) -> None:
    ofi = "NET/OFI" in line
    more = "\ntwo:1:2 [0] NCCL INFO Using network AWS Libfabric" if ofi else ""
    found = recorded(two=line + more)
    assert (bool(found.on_tcp), bool(found.nics)) == (is_tcp, ofi)


def test_other_runs_do_not_wait_for_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("STRICT_NETWORK", "0"), ("NNODES", "1"), ("EFA_INTERFACES", "0")):
        run_dir = start(tmp_path, monkeypatch, log="good-p4d-2-nodes")
        monkeypatch.setenv("STRICT_NETWORK", "1")
        monkeypatch.setenv(name, value)
        network.report()
        assert not (run_dir / "outcome").exists()


def test_a_report_warns_of_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = start(tmp_path, monkeypatch)
    network.report()
    (run_dir / "metrics.jsonl").write_text(json.dumps(row(1)) + "\n")
    capsys.readouterr()
    assert report.main([str(run_dir), "--record"]) == 0
    run = unpack(capsys.readouterr().out)
    assert any(warning.startswith("NCCL sends over TCP") for warning in warnings_of(run))
    assert ("network between the nodes", "Socket") in summary_table([run]).rows
