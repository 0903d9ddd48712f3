"""check-node.sh and prolog.sh, with programs that answer as nodes' do: well, and with each fault."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.unit.health_node import CLOCK, HealthNode
from training_cluster.families import family_names
from training_cluster.job_environment import render_job_environments
from training_cluster.settings import Settings
from training_cluster.steps import ASSETS

HEALTH = ASSETS / "bootstrap" / "health"
RECORDED = Path(__file__).parent / "node_health"
UNFIT = 9
READ_BY_CHECKS = {"ACCELERATOR_KIND", "ACCELERATORS_PER_NODE", "EFA_INTERFACES", "SCRATCH"}


def recorded(name: str) -> str:
    """A program's output, as a stub's script."""
    return f"cat '{RECORDED / name}'"


def gpu_node(root: Path, *, family: str = "p4d") -> HealthNode:
    """A node of 8 GPUs, all of which are well, with EFA and local disks."""
    node = HealthNode(root, family=family)
    node.stub("chronyc", f"echo '{CLOCK},Normal'")
    node.stub("mountpoint", "")
    (node.slash / "scratch").mkdir()
    node.stub("journalctl", recorded("kernel-well.txt"))
    node.stub("fi_info", recorded("fi_info-p4d.txt"))
    smi(node)
    return node


def smi(
    node: HealthNode,
    *,
    gpus: str = "list-gpus-8.txt",
    errors: str = "ecc-a100-well.txt",
    rows: str = "rows-well.txt",
    status: int = 0,
) -> None:
    node.stub(
        "nvidia-smi",
        f'case "$1" in\n--list-gpus) {recorded(gpus)} ;;\n--query-gpu=*) {recorded(errors)} ;;\n'
        f"--query-remapped-rows=*) {recorded(rows)} ;;\nesac\nexit {status}",
    )


def check(node: HealthNode, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(HEALTH / "check-node.sh"), node.queue],
        env=node.environment | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def found(node: HealthNode) -> str:
    """What is wrong with an unfit node."""
    done = check(node)
    assert done.returncode == UNFIT, done
    return done.stdout.strip()


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
            "the GPU 00000000:00:17.0 has retired pages pending: it wants a reset",
        ),
        (
            {"rows": "rows-pending.txt"},
            "the GPU 00000000:20:1C.0 has remapped rows pending: it wants a reset",
        ),
        (
            {"rows": "rows-failed.txt"},
            "the GPU 00000000:90:1C.0 could not remap rows of its memory: it is to be replaced",
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


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "the driver logged XID 79 for the GPU 0000:53:00: the GPU has fallen off the bus",
        ),
        (
            "NVRM: Xid (PCI:0000:cb:00): 95, pid=7062, name=python, Uncontained: LTC TAG (0x2,0x0)",
            "the driver logged XID 95 for the GPU 0000:cb:00: uncontained memory error",
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 "
            "(GPU Reset Required)",
            "the driver wants for the GPU 0000:01:00: GPU Reset Required",
        ),
    ],
    ids=["79", "95", "154"],
)
def test_an_error_that_a_gpu_does_not_outlive_is_named(tmp_path: Path, log: str, sentence: str) -> None:
    node = gpu_node(tmp_path)
    node.stub("journalctl", f'{recorded("kernel-well.txt")}\ncat <<"END"\n{log}\nEND')
    assert found(node) == sentence


def test_errors_that_programs_cause_or_that_were_mended_keep_no_node_from_work(tmp_path: Path) -> None:
    well = (RECORDED / "kernel-well.txt").read_text()
    assert [code for code in ("13", "31", "43", "45", "63", "94", "154") if f": {code}, " not in well] == []
    assert check(gpu_node(tmp_path)).returncode == 0


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            "echo 'fi_getinfo: -61 (No data available)' >&2; exit 61",
            "libfabric has no efa provider here, so jobs would fall back to TCP: "
            "fi_getinfo: -61 (No data available)",
        ),
        (recorded("fi_info-tcp.txt"), "libfabric finds 0 of 4 EFA interfaces"),
        (f"head -n 12 '{RECORDED / 'fi_info-p4d.txt'}'", "libfabric finds 2 of 4 EFA interfaces"),
    ],
    ids=["no provider", "tcp", "too few"],
)
def test_a_node_that_would_fall_back_to_tcp_is_unfit(tmp_path: Path, script: str, sentence: str) -> None:
    node = gpu_node(tmp_path)
    node.stub("fi_info", script)
    assert found(node) == sentence


def test_an_interface_counts_once_though_libfabric_lists_it_twice(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.set_fact("EFA_INTERFACES", "1")
    node.stub("fi_info", recorded("fi_info-direct.txt"))
    assert check(node).returncode == 0


def test_local_disks_that_are_not_mounted_are_told(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.stub("mountpoint", "exit 32")
    assert found(node) == "the local NVMe disks are not mounted on /scratch"


def test_local_disks_that_cannot_be_written_to_are_told(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    # Root may write anywhere but where nothing is; on a node it is a mount that turned read-only.
    (node.slash / "scratch").rmdir()
    assert found(node) == "the local NVMe disks on /scratch cannot be written to"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (f"echo '{CLOCK},Not synchronised'", "the clock is not synchronised (chronyc tracking)"),
        (f"echo '{CLOCK.replace('-0.000001234', '-2.5')},Normal'", "the clock is off by -2.5 s"),
        (
            "echo '506 Cannot talk to daemon'; exit 1",
            "chronyd does not answer: 506 Cannot talk to daemon",
        ),
    ],
    ids=["not synchronised", "off", "no daemon"],
)
def test_a_clock_that_is_not_right_is_told(tmp_path: Path, script: str, sentence: str) -> None:
    node = gpu_node(tmp_path)
    node.stub("chronyc", script)
    assert found(node) == sentence


def test_a_full_root_volume_is_told(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.stub("df", "printf ' Avail\\n   17\\n'")
    assert found(node) == "the root volume has 17 MiB left, and jobs want 1024"
    assert f"df --output=avail --block-size=1M {node.slash}/" in "\n".join(node.called())


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (15, "the driver found 15 of 16 Neuron devices"),
        (0, "there is no Neuron device of 16: is the driver of this kernel installed (lsmod | grep neuron)?"),
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
        ("10-gpus", UNFIT, "nvidia-smi is missing, so nobody knows whether its 8 GPUs work"),
        ("15-gpu-memory", UNFIT, "nvidia-smi is missing, so nobody knows whether its GPUs' memory is sound"),
        ("20-gpu-xid", 1, "journalctl is missing, so nobody knows whether its GPUs' driver logged errors"),
        ("40-efa", 1, "fi_info is missing, so nobody knows whether its 4 EFA interfaces work"),
        ("60-clock", 1, "chronyc is missing, so nobody knows whether its clock is right"),
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


def test_a_node_without_accelerators_is_asked_for_none(tmp_path: Path) -> None:
    node = HealthNode(tmp_path, family="m6i")
    node.be_well()
    for program in ("nvidia-smi", "fi_info", "journalctl", "mountpoint"):
        node.stub(program, "exit 1")
    assert check(node).returncode == 0
    assert node.called() == ["chronyc -n -c tracking"]


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    smi(node, gpus="list-gpus-7.txt")
    node.stub("mountpoint", "exit 32")
    assert found(node) == ("nvidia-smi lists 7 of 8 GPUs; the local NVMe disks are not mounted on /scratch")


def test_a_program_that_hangs_is_a_verdict_and_nobody_waits_for_it(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    # No signal ends a program that waits for a lost GPU; one that ignores all but SIGKILL comes near.
    node.stub("nvidia-smi", "trap '' TERM; exec sleep 20.0625")
    started = time.monotonic()
    done = check(node, HEALTH_LIMIT_S="1")
    assert time.monotonic() - started < 8
    assert done.returncode == UNFIT
    assert "the check 10-gpus did not end within 1 s" in done.stdout
    assert [p for p in psutil.process_iter(["cmdline"]) if "20.0625" in (p.info["cmdline"] or [])] == []


def test_a_check_with_a_fault_of_its_own_is_no_verdict_on_the_node(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.stub("chronyc", "echo 'a new release prints it otherwise'")
    node.stub("journalctl", "echo 'unknown option' >&2; exit 1")
    done = check(node)
    assert done.returncode == 0
    assert "60-clock: could not check (1)" in done.stderr
    assert "20-gpu-xid: could not check (1): unknown option" in done.stderr


def test_a_check_can_be_switched_off_on_the_head_node(tmp_path: Path) -> None:
    node = gpu_node(tmp_path)
    node.stub("chronyc", "exit 1")
    assert check(node).returncode == UNFIT
    skipped = node.slash / "opt" / "slurm" / "etc" / "training-cluster-skipped-checks"
    skipped.parent.mkdir(parents=True)
    skipped.write_text("60-clock\n")
    done = check(node)
    assert done.returncode == 0
    assert f"60-clock: not checked, {skipped} names it" in done.stderr


def test_a_rehearsals_node_is_not_asked_for_hardware_that_it_only_plays(tmp_path: Path) -> None:
    node = HealthNode(tmp_path, family="p5")
    (node.slash / "etc" / "parallelcluster" / "cfnconfig").unlink()
    done = check(node)
    assert done.returncode == 0, done
    assert "10-gpus: not checked, this is no ParallelCluster node" in done.stderr
    node.stub("df", "printf ' Avail\\n   17\\n'")
    assert check(node).returncode == UNFIT


def test_every_check_says_for_which_nodes_it_is() -> None:
    for path in sorted((HEALTH / "checks").iterdir()):
        header = path.read_text().split("set -euo")[0]
        assert "\n# Kinds: " in header, path.name
        assert "\n# Where: " in header, path.name


@pytest.mark.parametrize("family", family_names())
def test_every_partition_tells_what_the_checks_ask_of_it(family: str) -> None:
    for text in render_job_environments(Settings.from_context({"family": family})).values():
        assert {name for name in READ_BY_CHECKS if f"export {name}='" not in text} == set()


class Prolog:
    """The installed prolog on a node, and what Slurm's commands are asked."""

    def __init__(self, root: Path) -> None:
        self.node = HealthNode(root)
        self.node.be_well()
        smi(self.node)
        self.path = self.node.install_prolog()
        self.node.stub("scontrol", "")

    def run(self) -> subprocess.CompletedProcess[str]:
        """As slurmd does: with its own variables and nothing else."""
        slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "SLURM_JOB_PARTITION": "other"}
        return subprocess.run([str(self.path)], env=slurm, capture_output=True, text=True, timeout=60)

    def scontrol(self) -> list[str]:
        return [line for line in self.node.called() if line.startswith("scontrol")]


@pytest.fixture
def prolog(tmp_path: Path) -> Prolog:
    return Prolog(tmp_path)


def test_on_a_fit_node_the_prolog_passes(prolog: Prolog) -> None:
    done = prolog.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert prolog.node.health_log().endswith("health: gpu-dy-p4d-1, job 17: fit\n")
    assert prolog.scontrol() == []


def test_an_unfit_node_is_drained_with_the_reason(prolog: Prolog) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    assert prolog.run().returncode == 1
    reason = "training-cluster: nvidia-smi lists 7 of 8 GPUs"
    assert prolog.scontrol() == [f"scontrol update nodename=gpu-dy-p4d-1 state=drain reason={reason}"]
    assert "unfit, drained: nvidia-smi lists 7 of 8 GPUs" in prolog.node.health_log()


def test_a_node_that_slurm_does_not_let_drain_still_refuses_the_job(prolog: Prolog) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    prolog.node.stub("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert prolog.run().returncode == 1
    assert "scontrol failed" in prolog.node.health_log()


def test_a_node_that_missed_an_update_is_brought_up_to_date_before_it_is_checked(prolog: Prolog) -> None:
    node, new = prolog.node, "b" * 64
    node.want(new)
    mine = node.bundle / "bootstrap"
    mine.unlink()
    mine.mkdir()
    (mine / "health").symlink_to(HEALTH)
    script = f'echo "bootstrap $* $NODE_TYPE" >>"{node.calls}"; ln -sfn {new} "$TRAINING_BUNDLES/current"'
    (mine / "bootstrap.sh").write_text(script)
    (node.bundles / new / "bootstrap" / "health").mkdir(parents=True)
    (node.bundles / new / "bootstrap" / "health" / "check-node.sh").write_text("echo new rule; exit 9\n")
    assert prolog.run().returncode == 1
    assert "bootstrap s3://bucket/bootstrap/training ComputeFleet" in "\n".join(node.called())
    assert "runs the new bundle" in node.health_log()
    assert "unfit, drained: new rule" in node.health_log()


def test_a_refresh_that_hangs_is_ended_with_all_that_it_started_and_not_tried_at_each_job(
    prolog: Prolog,
) -> None:
    node, new = prolog.node, "b" * 64
    node.want(new)
    mine = node.bundle / "bootstrap"
    mine.unlink()
    mine.mkdir()
    (mine / "health").symlink_to(HEALTH)
    left = node.calls.parent / "left-running"
    (mine / "bootstrap.sh").write_text(f"timeout 60 bash -c 'sleep 4; touch {left}' | cat\n")
    text = prolog.path.read_text()
    prolog.path.write_text(text.replace("REFRESH_S=30", "REFRESH_S=1"))
    assert prolog.run().returncode == 0
    assert "the bootstrap failed" in node.health_log()
    time.sleep(4)
    assert not left.exists()
    assert prolog.run().returncode == 0
    assert "failed here in the last 15 min" in node.health_log()


def test_a_node_of_the_right_bundle_runs_no_bootstrap(prolog: Prolog) -> None:
    prolog.node.stub("flock", "exit 1")
    prolog.run()
    assert [line for line in prolog.node.called() if line.startswith("flock")] == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("no bundle", "has no health/check-node.sh: the job starts unchecked"),
        ("no config", "no bundle is named in"),
        ("no arguments", "bootstrap-arguments is missing: goes on with"),
        ("no bucket", "the bootstrap failed (see the lines above): goes on with"),
        ("no partition", "the checks themselves failed (1): the job starts unchecked"),
        ("a broken check", "the checks themselves failed (2): the job starts unchecked"),
    ],
)
def test_what_is_wrong_on_all_nodes_at_once_drains_none(prolog: Prolog, fault: str, said: str) -> None:
    node = prolog.node
    mine = node.bundle / "bootstrap"
    if fault == "no bundle":
        (node.bundles / "current").unlink()
    elif fault == "no config":
        (node.slash / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml").unlink()
    elif fault == "no arguments":
        node.want("b" * 64)
        (node.etc / "bootstrap-arguments").unlink()
    elif fault == "no partition":
        (node.etc / "partitions" / f"{node.queue}.env").unlink()
    else:
        mine.unlink()
        mine.mkdir()
        (mine / "health").symlink_to(HEALTH)
        (mine / "bootstrap.sh").write_text("echo gave up on s3://bucket >&2; exit 1\n")
        node.want("b" * 64)
        if fault == "a broken check":
            (mine / "health").unlink()
            (mine / "health").mkdir()
            (mine / "health" / "check-node.sh").write_text("if then\n")
    assert prolog.run().returncode == 0
    assert said in node.health_log()
    assert prolog.scontrol() == []
