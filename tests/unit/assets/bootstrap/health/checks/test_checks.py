"""The health checks, with programs that answer as nodes' do: well, and with each fault."""

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
    fabric_report,
    found,
    gpu_node,
    link_report,
    recorded,
    smi,
)


def test_a_well_gpu_node_is_fit(tmp_path: Path) -> None:
    """Every program is asked as it understands. Errors of jobs and mended ones keep no node from work."""
    well = (RECORDED / "kernel-well.txt").read_text()
    assert [code for code in ("13", "31", "43", "45", "63", "94", "154") if f": {code}, " not in well] == []
    node = gpu_node(tmp_path)
    started = time.monotonic()
    done = check(node)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - started < 3
    assert sorted(node.called()) == [
        "chronyc -n -c tracking",
        "fi_info -p efa -t FI_EP_RDM",
        "journalctl --dmesg --boot --no-pager --quiet --output=cat",
        f"mountpoint --quiet {node.root}/scratch",
        "nvidia-smi --list-gpus",
        "nvidia-smi --query-compute-apps=pid --format=csv,noheader",
        "nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader",
        "nvidia-smi --query-gpu=pci.bus_id,ecc.errors.uncorrected.volatile.total,retired_pages.pending "
        "--format=csv,noheader,nounits",
        "nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure "
        "--format=csv,noheader,nounits",
        "nvidia-smi -q",
        "nvidia-smi nvlink --status",
        f"python3 -I {HEALTH}/checks/../gpu_cuda.py 8",
    ]


def test_odd_gpu_nodes_are_fit(tmp_path: Path) -> None:
    """GPUs without remapped rows or ECC, GPUs in use, interfaces listed twice, and just enough disk."""
    node = gpu_node(tmp_path)
    for values in ("ecc-v100-well.txt", "ecc-none.txt"):
        smi(node, errors=values, rows="rows-none.txt")
        assert check(node).returncode == 0
    smi(node, programs="4711\\n4712\\n")
    node.stub("python3", "echo 'CUDA takes memory'; exit 9")
    node.set_fact("EFA_INTERFACES", "1")
    node.stub("fi_info", recorded("fi_info-direct.txt"))
    node.stub("df", "printf ' Avail\\n   1024\\n'")
    assert check(node).returncode == 0
    assert f"df --output=avail --block-size=1M {node.root}/" in node.called()


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
def test_a_lost_gpu_or_memory_is_named(tmp_path: Path, answers: dict[str, str], sentence: str) -> None:
    node = gpu_node(tmp_path)
    smi(node, **answers)  # type: ignore[arg-type]
    assert sentence in found(node).split("; ")


READY = "Completed,Success,N/A"
ALL_UP = [[True] * 18] * 8


@pytest.mark.parametrize(
    ("states", "links", "sentence"),
    [
        ([READY] * 8, ALL_UP, ""),
        (["Completed,Success,Healthy"] * 8, ALL_UP, ""),
        (["N/A,N/A,N/A"] * 8, [[]] * 8, ""),
        (["N/A,N/A,N/A"] * 8, [[False] * 4] * 8, ""),
        ([], [], ""),
        (
            [*[READY] * 7, "In Progress,N/A,N/A"],
            ALL_UP,
            "the fabric of the GPU 00000000:77:00.0 is not ready (In Progress): CUDA ends with error 802",
        ),
        (
            ["Not Started,N/A,N/A"] * 8,
            ALL_UP,
            "the fabric of the GPU 00000000:00:00.0 is not ready (Not Started): CUDA ends with error 802",
        ),
        (
            ["Completed,Unknown Error,N/A"] * 8,
            ALL_UP,
            "the GPU 00000000:00:00.0 could not join its fabric: Unknown Error",
        ),
        (
            [READY, "Completed,Success,Unhealthy"],
            ALL_UP,
            "the driver calls the fabric of the GPU 00000000:11:00.0 unhealthy",
        ),
        (
            ["N/A,N/A,N/A"] * 8,
            [*[[True] * 6] * 7, [True, True, True, False, True, False]],
            "the GPU 7 has 4 NVLinks, and another of this node has 6 (down: link 3, 5)",
        ),
        (
            ["N/A,N/A,N/A"] * 8,
            [[], *[[True] * 6] * 7],
            "the GPU 0 has 0 NVLinks, and another of this node has 6",
        ),
    ],
    ids=[
        "p5",
        "healthy",
        "g5",
        "no bridge",
        "unknown text",
        "one waits",
        "none begun",
        "failed",
        "sick",
        "links",
        "no link",
    ],
)
def test_a_broken_fabric_or_link_is_named(
    tmp_path: Path, states: list[str], links: list[list[bool]], sentence: str
) -> None:
    node = gpu_node(tmp_path, family="p5")
    node.set_fact("EFA_INTERFACES", "0")
    smi(node, report=fabric_report(states), links=link_report(links))
    done = check(node)
    assert (done.returncode, done.stdout) == ((UNHEALTHY, f"{sentence}\n") if sentence else (0, "")), done


def test_mig_hides_links_and_cuda(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    links = link_report([*[[True] * 12] * 7, [False] * 12])
    smi(node, report=fabric_report(["N/A,N/A,N/A"] * 8, mig="Enabled"), links=links, modes="Enabled")
    node.stub("python3", "echo 'CUDA sees 1 of 8 GPUs'; exit 9")
    assert check(node).returncode == 0


def test_one_gpu_alone_has_no_fabric(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    smi(node, report=fabric_report(["Not Started,N/A,N/A"]), links="")
    for number, status in (("1", 0), ("8", UNHEALTHY)):
        environment = {"PATH": f"{node.programs}:/usr/bin:/bin", "ACCELERATORS_PER_NODE": number}
        script = ["bash", str(HEALTH / "checks" / "12-gpu-fabric.sh")]
        assert subprocess.run(script, env=environment, capture_output=True).returncode == status


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
        # Root may write anywhere but where nothing is; on a node it is a mount that turned read-only.
        ("mountpoint", 'rmdir "$2"', "the local NVMe disks on /scratch cannot be written to"),
        ("python3", "echo 'CUDA does not start'; exit 9", "CUDA does not start"),
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
def test_what_keeps_a_node_from_work(tmp_path: Path, program: str, script: str, sentence: str) -> None:
    node = gpu_node(tmp_path)
    node.stub(program, script)
    assert found(node) == sentence


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
    devices = node.root / "dev"
    devices.mkdir()
    for n in range(16):
        (devices / f"neuron{n}").touch()
    assert check(node).returncode == 0
    for n in range(count, 16):
        (devices / f"neuron{n}").unlink()
    assert found(node) == sentence


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0 hostname=ip-172-31-61-252 nd-id=3 "
            "nc-id=0 serial-num=19fcda00f5ff6eb9 action=TERMINATE_INSTANCE",
            "the Neuron runtime logged SRAM_UNCORRECTABLE_ERROR of device 3",
        ),
        ("kernel: NEURON_HW_ERR=DMA_ERROR", "the Neuron runtime logged DMA_ERROR"),
        ("NEURON_HW_ERR=HANG_ON_COLLECTIVES nd-id=3 action=TERMINATE_INSTANCE", ""),
        ("NEURON_HW_ERR=SRAM_CORRECTABLE_ERROR nd-id=3", ""),
    ],
)
def test_a_broken_neuron_device_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    node = HealthNode(tmp_path, family="trn1")
    node.be_well()
    (node.root / "dev").mkdir()
    for n in range(16):
        (node.root / "dev" / f"neuron{n}").touch()
    node.stub("journalctl", f"echo '{line}'")
    assert check(node).stdout == (f"{sentence}\n" if sentence else "")


def test_of_missing_programs_nvidias_is_a_verdict(tmp_path: Path) -> None:
    """This machine may have some of them: the check gets a PATH of its own."""
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    environment = {"PATH": str(tmp_path), "ACCELERATORS_PER_NODE": "8", "EFA_INTERFACES": "4"}
    for name, status, program, unknown in (
        ("10-gpus", UNHEALTHY, "nvidia-smi", "its 8 GPUs work"),
        ("12-gpu-fabric", UNHEALTHY, "nvidia-smi", "its GPUs' fabric is ready"),
        ("14-gpu-cuda", UNHEALTHY, "nvidia-smi", "CUDA starts"),
        ("15-gpu-memory", UNHEALTHY, "nvidia-smi", "its GPUs' memory is sound"),
        ("20-gpu-xid", 1, "journalctl", "its GPUs' driver logged errors"),
        ("40-efa", 1, "fi_info", "its 4 EFA interfaces work"),
        ("60-clock", 1, "chronyc", "its clock is right"),
    ):
        script = ["/bin/bash", str(HEALTH / "checks" / f"{name}.sh")]
        done = subprocess.run(script, env=environment, capture_output=True, text=True)
        sentence = f"{program} is missing, so it is unknown whether {unknown}\n"
        assert (done.returncode, f"{done.stdout}{done.stderr}") == (status, sentence)
