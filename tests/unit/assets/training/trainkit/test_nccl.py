"""The network that NCCL took, read from its own lines."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from ops.report.record import unpack
from ops.report.tables import summary_table, warnings_of
from tests.unit.assets.training.trainkit.run.runs import report, row
from training_cluster.paths import TRAINING

sys.path.insert(0, str(TRAINING))
try:
    from trainkit import nccl
finally:
    sys.path.remove(str(TRAINING))

LOGS = Path(__file__).parents[1] / "nccl_tests" / "logs"
JOB = {"NNODES": "2", "SLURM_JOB_ID": "7", "EFA_INTERFACES": "4"}


def recorded(run_dir: Path, **logs: str) -> nccl.Network:
    folder = run_dir / "network" / "7-0"
    folder.mkdir(parents=True)
    for host, log in logs.items():
        shutil.copyfile(LOGS / f"{log}.log", folder / f"{host}.log")
    return nccl.read(run_dir, JOB)


def test_each_node_of_a_job_of_several_records_into_a_file_of_its_own(tmp_path: Path) -> None:
    environment = JOB | {"SLURMD_NODENAME": "gpu-dy-p4d-2"}
    nccl.record(tmp_path, environment)
    file = Path(environment["NCCL_DEBUG_FILE"])
    assert file == tmp_path / "network" / "7-0" / "gpu-dy-p4d-2.log"
    assert file.parent.is_dir()
    assert (environment["NCCL_DEBUG"], environment["NCCL_DEBUG_SUBSYS"]) == ("INFO", "INIT,NET")


@pytest.mark.parametrize("given", [{"NNODES": "1"}, {"NCCL_DEBUG": "WARN"}])
def test_one_node_and_settings_of_the_users_own_are_left_alone(tmp_path: Path, given: dict[str, str]) -> None:
    environment = JOB | given
    nccl.record(tmp_path, environment)
    assert environment == JOB | given
    assert not list(tmp_path.iterdir())


def test_efa_on_all_nodes_is_no_complaint(tmp_path: Path) -> None:
    network = recorded(tmp_path, one="good-p4d-2-nodes", two="good-p4d-2-nodes")
    assert (network.names, network.providers, network.nics, network.on_tcp) == (
        ["Libfabric"],
        ("efa",),
        (4,),
        [],
    )
    assert nccl.complaint(network, JOB) == ""


def test_a_node_that_sends_over_tcp_is_named_where_it_has_efa(tmp_path: Path) -> None:
    network = recorded(tmp_path, one="good-p4d-2-nodes", two="bad-efa-unused")
    assert network.on_tcp == ["two"]
    assert nccl.complaint(network, JOB).startswith(
        "NCCL sends over TCP (NET/Socket) on two, and these nodes have 4 EFA"
    )
    assert nccl.complaint(network, JOB | {"EFA_INTERFACES": "0"}) == "", "TCP is all that such nodes have"


@pytest.mark.parametrize(
    "line", ["NCCL INFO Using network Socket", "NCCL INFO Assigned NET plugin Socket to comm"]
)
def test_a_rank_without_a_connection_to_another_node_names_the_network_too(tmp_path: Path, line: str) -> None:
    """Other GPUs of the node may be nearer to its cards than the one that records."""
    folder = tmp_path / "network" / "7-0"
    folder.mkdir(parents=True)
    (folder / "two.log").write_text(f"two:1:2 [0] {line}\n")
    assert nccl.read(tmp_path, JOB).on_tcp == ["two"]


def test_libfabric_over_tcp_is_tcp(tmp_path: Path) -> None:
    network = recorded(tmp_path, one="good-p4d-2-nodes", two="bad-provider-tcp")
    assert (network.names, network.on_tcp) == (["Libfabric", "Libfabric (tcp)"], ["two"])
    assert nccl.complaint(network, JOB).startswith("NCCL sends over TCP (NET/Libfabric (tcp)) on two, and ")


@pytest.mark.parametrize(
    ("provider", "is_tcp"),
    [
        ("NET/OFI Selected Provider is efa (found 16 nics)", False),  # aws-ofi-nccl 1.14
        ("NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)", False),
        ("NET/OFI Selected provider is tcp, fabric is 172.31.32.0/20 (found 1 nics)", True),
        ("NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)", True),
    ],
)
def test_providers_of_old_and_new_plugins_are_read(tmp_path: Path, provider: str, is_tcp: bool) -> None:
    folder = tmp_path / "network" / "7-0"
    folder.mkdir(parents=True)
    begin = "two:1:2 [0] NCCL INFO"
    (folder / "two.log").write_text(f"{begin} {provider}\n{begin} Using network AWS Libfabric\n")
    network = nccl.read(tmp_path, JOB)
    assert (bool(network.on_tcp), bool(network.nics)) == (is_tcp, True)


def test_a_strict_run_needs_a_line_of_each_node_that_has_efa(tmp_path: Path) -> None:
    strict = JOB | {"STRICT_NETWORK": "1"}
    network = recorded(tmp_path, one="good-p4d-2-nodes")
    assert nccl.refusal(network, strict) == ("NCCL has not written which network it takes on 1 of 2 nodes.")
    for lax in ({"STRICT_NETWORK": "0"}, {"NNODES": "1"}, {"EFA_INTERFACES": "0"}):
        assert nccl.refusal(network, strict | lax) == ""
    good = recorded(tmp_path / "good", one="good-p4d-2-nodes", two="good-p4d-2-nodes")
    assert nccl.refusal(good, strict) == ""
    bad = recorded(tmp_path / "bad", one="bad-efa-unused", two="bad-efa-unused")
    assert nccl.refusal(bad, strict).startswith("NCCL sends over TCP (NET/Socket) on one, two, ")


def test_lines_of_another_start_are_not_read(tmp_path: Path) -> None:
    assert recorded(tmp_path, one="bad-efa-unused").transports
    assert not nccl.read(tmp_path, JOB | {"SLURM_RESTART_COUNT": "1"}).transports


def test_a_report_warns_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = tmp_path / "runs" / "gpt2" / "job-7"
    network = recorded(run_dir, one="bad-efa-unused")
    nccl.note(run_dir, network, JOB)
    (run_dir / "metrics.jsonl").write_text(json.dumps(row(1)) + "\n")
    assert report.main([str(run_dir), "--record"]) == 0
    run = unpack(capsys.readouterr().out)
    assert any(warning.startswith("NCCL sends over TCP") for warning in warnings_of(run))
    assert ("network between the nodes", "Socket") in summary_table([run]).rows
