"""The health checks, with programs that answer as nodes' do: well, and with each fault."""

import subprocess
from pathlib import Path

from tests.unit.assets.bootstrap.health.health_node import (
    CLOCK,
    EFA,
    HEALTH,
    KERNEL,
    UNHEALTHY,
    HealthNode,
    fabric_report,
    link_report,
    list_gpus,
    prints,
)

SETTINGS = {"ACCELERATORS_PER_NODE": "8", "EFA_INTERFACES": "4", "SCRATCH": "/scratch"}
Programs = dict[str, str]


def test_a_well_gpu_node_is_fit(tmp_path: Path) -> None:
    """Every program is asked as it understands. Errors of jobs and mended ones keep no node from work."""
    assert [code for code in ("13", "31", "43", "45", "63", "94", "154") if f": {code}, " not in KERNEL] == []
    node = HealthNode(tmp_path)
    (node.root / "scratch").mkdir()
    smi = f"if [[ $1 == --list-gpus ]]; then {list_gpus(8)}; fi"  # gpu_cuda.py has tests of its own
    for program, script in {
        **{"chronyc": f"echo '{CLOCK},Normal'", "mountpoint": "", "journalctl": prints(KERNEL)},
        **{"fi_info": prints(EFA), "nvidia-smi": smi, "python3": ""},
    }.items():
        node.stub(program, script)
    command = ["bash", str(HEALTH / "check-node.sh"), node.queue]
    done = subprocess.run(command, env=node.environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
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


def memory(errors: str, rows: str = "00000000:10:1C.0, 0, 0") -> Programs:
    return {"nvidia-smi": f"case $1 in --query-gpu=*) {prints(errors)} ;; *) {prints(rows)} ;; esac"}


READY, NONE, WELL = "Completed,Success,N/A", "N/A,N/A,N/A", "00000000:10:1C.0, 0, No"
ALL_UP = [[True] * 18] * 8


def fabric(states: list[str], links: list[list[bool]], *, mig: str = "N/A") -> Programs:
    report, listed = fabric_report(states, mig=mig), link_report(links)
    return {"nvidia-smi": f"case $1 in -q) {prints(report)} ;; nvlink) {prints(listed)} ;; esac"}


def cuda(*, modes: str = "Disabled", programs: str = "") -> Programs:
    return {
        "nvidia-smi": f"case $1 in *mig.mode*) {prints(modes)} ;; *) {prints(programs)} ;; esac",
        "python3": "echo 'CUDA does not start'; exit 9",
    }


def logged(line: str) -> Programs:
    return {"journalctl": prints(f"{KERNEL}NVRM: Xid (PCI:0000:cb:00): {line}")}


GPU_0 = "the fabric of the GPU 00000000:00:00.0 is not ready"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA driver is installed and running."
)
LOST = "Unable to determine the device handle for GPU0000:A0:1C.0: Unknown Error"
DIRECT = EFA.split("provider:")[1].replace("fabric: efa", "fabric: efa-direct")
BROKEN = "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0 nd-id=3 nc-id=0 action=TERMINATE_INSTANCE"
# By check, with its settings that differ: programs, and the sentence of an unhealthy node.
CASES: dict[str, list[tuple[Programs, str]]] = {
    "10-gpus": [
        ({"nvidia-smi": list_gpus(7)}, "nvidia-smi lists 7 of 8 GPUs"),
        ({"nvidia-smi": f"echo '{LOST}'; {list_gpus(7)}; exit 15"}, f"nvidia-smi lists 7 of 8 GPUs ({LOST})"),
        ({"nvidia-smi": f"{prints(NO_DRIVER)}; echo; exit 9"}, f"nvidia-smi lists 0 of 8 GPUs ({NO_DRIVER})"),
    ],
    "12-gpu-fabric": [
        (fabric([READY] * 8, ALL_UP), ""),
        (fabric(["Completed,Success,Healthy"] * 8, ALL_UP), ""),
        (fabric([NONE] * 8, [[]] * 8), ""),  # g5
        (fabric([NONE] * 8, [[False] * 4] * 8), ""),  # without a bridge
        (fabric([], []), ""),  # an unknown text
        (
            fabric([*[READY] * 7, "In Progress,N/A,N/A"], ALL_UP),
            "the fabric of the GPU 00000000:77:00.0 is not ready (In Progress): CUDA ends with error 802",
        ),
        (fabric(["Not Started,N/A,N/A"], []), f"{GPU_0} (Not Started): CUDA ends with error 802"),
        (
            fabric(["Completed,Unknown Error,N/A"] * 8, ALL_UP),
            "the GPU 00000000:00:00.0 could not join its fabric: Unknown Error",
        ),
        (
            fabric([READY, "Completed,Success,Unhealthy"], ALL_UP),
            "the driver calls the fabric of the GPU 00000000:11:00.0 unhealthy",
        ),
        (
            fabric([NONE] * 8, [*[[True] * 6] * 7, [True, True, True, False, True, False]]),
            "the GPU 7 has 4 NVLinks, and another of this node has 6 (down: link 3, 5)",
        ),
        (
            fabric([NONE] * 8, [[], *[[True] * 6] * 7]),
            "the GPU 0 has 0 NVLinks, and another of this node has 6",
        ),
        (fabric([NONE] * 8, [*[[True] * 12] * 7, [False] * 12], mig="Enabled"), ""),
    ],
    "12-gpu-fabric ACCELERATORS_PER_NODE=1": [(fabric(["Not Started,N/A,N/A"], []), "")],
    "14-gpu-cuda": [
        (cuda(), "CUDA does not start"),
        (cuda(modes="Enabled"), ""),
        (cuda(programs="4711\n4712"), ""),
    ],
    "15-gpu-memory": [
        (memory(WELL), ""),
        (memory("00000000:10:1C.0, [N/A], [N/A]", rows="00000000:10:1C.0, [N/A], [N/A]"), ""),
        (
            memory(f"{WELL}\n00000000:10:1D.0, 3, [N/A]"),
            "the GPU 00000000:10:1D.0 has 3 uncorrected memory errors (ECC) since its driver was loaded",
        ),
        (
            memory(f"{WELL}\n00000000:00:17.0, 0, Yes"),
            "the GPU 00000000:00:17.0 has retired pages pending: it needs a reset",
        ),
        (
            memory(WELL, rows="00000000:20:1C.0, 1, 0"),
            "the GPU 00000000:20:1C.0 has remapped rows pending: it needs a reset",
        ),
        (
            memory(WELL, rows="00000000:90:1C.0, 0, 1"),
            "the GPU 00000000:90:1C.0 could not remap rows of its memory: replace it",
        ),
    ],
    "20-gpu-xid": [
        (
            logged("79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus."),
            "the driver logged XID 79 for the GPU 0000:cb:00: the GPU has fallen off the bus",
        ),
        (
            logged("154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
            "the driver asks for the GPU 0000:cb:00: GPU Reset Required",
        ),
    ],
    "35-neuron-errors": [
        (
            {"journalctl": f"echo '{BROKEN}'"},
            "the Neuron runtime logged SRAM_UNCORRECTABLE_ERROR of device 3",
        ),
        ({"journalctl": "echo 'NEURON_HW_ERR=DMA_ERROR'"}, "the Neuron runtime logged DMA_ERROR"),
        ({"journalctl": "echo 'NEURON_HW_ERR=HANG_ON_COLLECTIVES nd-id=3'"}, ""),
        ({"journalctl": "echo 'NEURON_HW_ERR=SRAM_CORRECTABLE_ERROR nd-id=3'"}, ""),
    ],
    "40-efa": [
        (
            {"fi_info": "echo 'fi_getinfo: -61 (No data available)' >&2; exit 61"},
            "libfabric has no efa provider here, so jobs would fall back to TCP: "
            "fi_getinfo: -61 (No data available)",
        ),
        (
            {"fi_info": prints("provider: tcp;ofi_rxm\n    domain: ens5")},
            "libfabric finds 0 of 4 EFA interfaces",
        ),
        ({"fi_info": f"{prints(EFA)} | head -n 12"}, "libfabric finds 2 of 4 EFA interfaces"),
        # An interface that is listed twice.
        ({"fi_info": prints(f"{EFA}provider:{DIRECT}")}, ""),
    ],
    "50-scratch": [
        ({"mountpoint": "exit 32"}, "the local NVMe disks are not mounted on /scratch"),
        # Root may write anywhere but where nothing is; on a node it is a mount that turned read-only.
        ({"mountpoint": 'rmdir "$2"'}, "the local NVMe disks on /scratch cannot be written to"),
    ],
    "60-clock": [
        ({"chronyc": f"echo '{CLOCK},Not synchronised'"}, "the clock is not synchronised (chronyc tracking)"),
        ({"chronyc": f"echo '{CLOCK.replace('-0.000001234', '-2.5')},Normal'"}, "the clock is off by -2.5 s"),
        (
            {"chronyc": "echo '506 Cannot talk to daemon'; exit 1"},
            "chronyd does not answer: 506 Cannot talk to daemon",
        ),
    ],
    "70-root-disk": [
        ({"df": "printf ' Avail\\n   1024\\n'"}, ""),
        ({"df": "printf ' Avail\\n   17\\n'"}, "the root volume has 17 MiB left, and jobs need 1024"),
    ],
}


def run(name: str, **environment: str) -> tuple[int, str]:
    """Return a check's exit status and output."""
    script = ["/bin/bash", str(HEALTH / "checks" / f"{name}.sh")]
    done = subprocess.run(script, env=SETTINGS | environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_each_fault_has_a_sentence(tmp_path: Path) -> None:
    for check, cases in CASES.items():
        name, *settings = check.split()
        for number, (programs, sentence) in enumerate(cases):
            folder = tmp_path / f"{check}-{number}"
            (folder / "scratch").mkdir(parents=True)
            for program, script in programs.items():
                (folder / program).write_text(f"#!/bin/bash\n{script}\n")
                (folder / program).chmod(0o755)
            environment = {"PATH": f"{folder}:/usr/bin:/bin", "TRAINING_ROOT": str(folder)}
            environment |= dict(each.split("=") for each in settings)
            wanted = (UNHEALTHY, f"{sentence}\n") if sentence else (0, "")
            assert run(name, **environment) == wanted, (check, number)


def test_a_neuron_node_counts_its_devices(tmp_path: Path) -> None:
    none = "found no Neuron device of 2: is this kernel's driver installed (lsmod | grep neuron)?\n"
    (tmp_path / "dev").mkdir()
    for count, wanted in enumerate(
        [(UNHEALTHY, none), (UNHEALTHY, "the driver found 1 of 2 Neuron devices\n"), (0, "")]
    ):
        environment = {"PATH": "/usr/bin:/bin", "TRAINING_ROOT": str(tmp_path), "ACCELERATORS_PER_NODE": "2"}
        assert run("30-neuron-devices", **environment) == wanted
        (tmp_path / "dev" / f"neuron{count}").touch()


def test_of_missing_programs_nvidias_is_a_verdict(tmp_path: Path) -> None:
    """This machine may have some of them: the check gets a PATH of its own."""
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    for name, status, program, unknown in (
        ("10-gpus", UNHEALTHY, "nvidia-smi", "its 8 GPUs work"),
        ("12-gpu-fabric", UNHEALTHY, "nvidia-smi", "its GPUs' fabric is ready"),
        ("14-gpu-cuda", UNHEALTHY, "nvidia-smi", "CUDA starts"),
        ("15-gpu-memory", UNHEALTHY, "nvidia-smi", "its GPUs' memory is sound"),
        ("20-gpu-xid", 1, "journalctl", "its GPUs' driver logged errors"),
        ("40-efa", 1, "fi_info", "its 4 EFA interfaces work"),
        ("60-clock", 1, "chronyc", "its clock is right"),
    ):
        sentence = f"{program} is missing, so it is unknown whether {unknown}\n"
        assert run(name, PATH=str(tmp_path)) == (status, sentence)
