"""The health checks, with programs that answer as nodes' do: well, and with each fault."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import (
    CLOCK,
    HEALTH,
    RECORDED,
    UNHEALTHY,
    HealthNode,
    check,
    found,
    gpu_node,
    recorded,
    smi,
)


def test_a_gpu_node_that_is_well_is_fit_and_every_program_is_asked_as_it_understands(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    started = time.monotonic()
    done = check(node)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - started < 3
    assert sorted(node.called()) == [
        "chronyc -n -c tracking",
        "fi_info -p efa -t FI_EP_RDM",
        "journalctl --dmesg --boot --no-pager --quiet --output=cat",
        f"mountpoint --quiet {node.slash}/scratch",
        "nvidia-smi --list-gpus",
        "nvidia-smi --query-gpu=pci.bus_id,ecc.errors.uncorrected.volatile.total,retired_pages.pending "
        "--format=csv,noheader,nounits",
        "nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure "
        "--format=csv,noheader,nounits",
    ]


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"gpus": "list-gpus-7.txt"}, "nvidia-smi lists 7 of 8 GPUs"),
        (
            {"gpus": "list-gpus-lost.txt", "status": 15},
            "nvidia-smi lists 7 of 8 GPUs (Unable to determine the device handle for GPU0000:A0:1C.0: "
            "Unknown Error)",
        ),
        (
            {"gpus": "no-driver.txt", "status": 9},
            "nvidia-smi lists 0 of 8 GPUs (NVIDIA-SMI has failed because it couldn't communicate with the "
            "NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.)",
        ),
        (
            {"errors": "ecc-a100-bad.txt"},
            "the GPU 00000000:10:1D.0 has 3 uncorrected memory errors (ECC) since its driver was loaded",
        ),
        (
            {"errors": "ecc-v100-pending.txt"},
            "the GPU 00000000:00:17.0 has retired pages pending: it needs a reset",
        ),
        (
            {"rows": "rows-pending.txt"},
            "the GPU 00000000:20:1C.0 has remapped rows pending: it needs a reset",
        ),
        (
            {"rows": "rows-failed.txt"},
            "the GPU 00000000:90:1C.0 could not remap rows of its memory: replace it",
        ),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_a_gpu_that_is_lost_or_has_lost_memory_is_named(
    tmp_path: Path, answers: dict[str, str], sentence: str
) -> None:
    node = gpu_node(tmp_path)
    smi(node, **answers)  # type: ignore[arg-type]
    assert sentence in found(node).split("; ")


@pytest.mark.parametrize("values", ["ecc-v100-well.txt", "ecc-none.txt"])
def test_a_gpu_without_remapped_rows_or_ecc_is_fit(tmp_path: Path, values: str) -> None:
    node = gpu_node(tmp_path)
    smi(node, errors=values, rows="rows-none.txt")
    assert check(node).returncode == 0


FALLS_BACK = "libfabric has no efa provider here, so jobs would fall back to TCP: "
HAS_LOGGED = f"{recorded('kernel-well.txt')}; echo 'NVRM: Xid (PCI:0000:cb:00): {{}}'"


@pytest.mark.parametrize(
    ("program", "script", "sentence"),
    [
        (
            "journalctl",
            HAS_LOGGED.format("79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus."),
            "the driver logged XID 79 for the GPU 0000:cb:00: the GPU has fallen off the bus",
        ),
        (
            "journalctl",
            HAS_LOGGED.format("95, pid=7062, name=python, Uncontained: LTC TAG (0x2,0x0)"),
            "the driver logged XID 95 for the GPU 0000:cb:00: uncontained memory error",
        ),
        (
            "journalctl",
            HAS_LOGGED.format("154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
            "the driver asks for the GPU 0000:cb:00: GPU Reset Required",
        ),
        (
            "fi_info",
            "echo 'fi_getinfo: -61 (No data available)' >&2; exit 61",
            f"{FALLS_BACK}fi_getinfo: -61 (No data available)",
        ),
        ("fi_info", recorded("fi_info-tcp.txt"), "libfabric finds 0 of 4 EFA interfaces"),
        (
            "fi_info",
            f"head -n 12 '{RECORDED / 'fi_info-p4d.txt'}'",
            "libfabric finds 2 of 4 EFA interfaces",
        ),
        ("mountpoint", "exit 32", "the local NVMe disks are not mounted on /scratch"),
        (
            "chronyc",
            f"echo '{CLOCK},Not synchronised'",
            "the clock is not synchronised (chronyc tracking)",
        ),
        (
            "chronyc",
            f"echo '{CLOCK.replace('-0.000001234', '-2.5')},Normal'",
            "the clock is off by -2.5 s",
        ),
        (
            "chronyc",
            "echo '506 Cannot talk to daemon'; exit 1",
            "chronyd does not answer: 506 Cannot talk to daemon",
        ),
        (
            "df",
            "printf ' Avail\\n   17\\n'",
            "the root volume has 17 MiB left, and jobs need 1024",
        ),
    ],
    ids=lambda value: value if value.isalpha() or value == "fi_info" else "",
)
def test_what_keeps_a_node_from_work_is_told(
    tmp_path: Path, program: str, script: str, sentence: str
) -> None:
    node = gpu_node(tmp_path)
    node.stub(program, script)
    assert found(node) == sentence


def test_errors_that_programs_cause_or_that_were_mended_keep_no_node_from_work(tmp_path: Path) -> None:
    well = (RECORDED / "kernel-well.txt").read_text()
    assert [code for code in ("13", "31", "43", "45", "63", "94", "154") if f": {code}, " not in well] == []
    assert check(gpu_node(tmp_path)).returncode == 0


def test_an_interface_counts_once_though_libfabric_lists_it_twice(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.set_fact("EFA_INTERFACES", "1")
    node.stub("fi_info", recorded("fi_info-direct.txt"))
    assert check(node).returncode == 0


def test_local_disks_that_cannot_be_written_to_are_told(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    # Root may write anywhere but where nothing is; on a node it is a mount that turned read-only.
    (node.slash / "scratch").rmdir()
    assert found(node) == "the local NVMe disks on /scratch cannot be written to"


def test_the_root_volume_is_asked_for_in_mebibytes(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.stub("df", "printf ' Avail\\n   1024\\n'")
    assert check(node).returncode == 0
    assert f"df --output=avail --block-size=1M {node.slash}/" in node.called()


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (15, "the driver found 15 of 16 Neuron devices"),
        (0, "found no Neuron device of 16: is this kernel's driver installed (lsmod | grep neuron)?"),
    ],
)
def test_a_neuron_node_counts_its_devices(tmp_path: Path, count: int, sentence: str) -> None:
    node = HealthNode(tmp_path, family="trn1")
    node.be_well()
    devices = node.slash / "dev"
    devices.mkdir()
    for n in range(16):
        (devices / f"neuron{n}").touch()
    assert check(node).returncode == 0
    for n in range(count, 16):
        (devices / f"neuron{n}").unlink()
    assert found(node) == sentence


@pytest.mark.parametrize(
    ("name", "status", "sentence"),
    [
        ("10-gpus", UNHEALTHY, "nvidia-smi is missing, so it is unknown whether its 8 GPUs work"),
        (
            "15-gpu-memory",
            UNHEALTHY,
            "nvidia-smi is missing, so it is unknown whether its GPUs' memory is sound",
        ),
        ("20-gpu-xid", 1, "journalctl is missing, so it is unknown whether its GPUs' driver logged errors"),
        ("40-efa", 1, "fi_info is missing, so it is unknown whether its 4 EFA interfaces work"),
        ("60-clock", 1, "chronyc is missing, so it is unknown whether its clock is right"),
    ],
)
def test_a_program_that_the_node_should_have_and_lacks_is_told_and_only_nvidias_is_a_verdict(
    tmp_path: Path, name: str, status: int, sentence: str
) -> None:
    # This machine may have some of them: the check gets a PATH of its own.
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    done = subprocess.run(
        ["/bin/bash", str(HEALTH / "checks" / f"{name}.sh")],
        env={"PATH": str(tmp_path), "ACCELERATORS_PER_NODE": "8", "EFA_INTERFACES": "4"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, f"{done.stdout}{done.stderr}") == (status, f"{sentence}\n")
