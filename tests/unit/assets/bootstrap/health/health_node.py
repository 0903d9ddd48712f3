"""A node's disk under one folder, with the bundle on it and programs that answer as a test likes."""

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings

HEALTH = ASSETS / "bootstrap" / "health"
RECORDED = Path(__file__).parent / "recorded"
UNHEALTHY = 9
BUNDLE_SHA256 = "a" * 64
NOW = "1792656000.123456789"
CLOCK = f"A9FEA97B,169.254.169.123,4,{NOW},-0.000001234,0.000002,0.000004,-12.1,0.0,0.01,0.0003,0.0001,16.1"


@cache
def checks_version() -> str:
    """Return the version of the checks as drain_limit.sh writes it."""
    program = f"HERE={HEALTH}; TRAINING_ROOT=; source {HEALTH}/drain_limit.sh; version"
    return subprocess.check_output(["bash", "-c", program], text=True).strip()


class HealthNode:
    """The files and programs that prolog.sh and check-node.sh use on a node of ParallelCluster."""

    def __init__(self, root: Path, *, family: str = "p4d", **flags: str) -> None:
        self.root, self.slash, self.etc = root, root / "slash", root / "etc"
        self.bundles = self.slash / "opt" / "training-cluster" / "bundles"
        self.prolog_folder = self.slash / "opt" / "slurm" / "etc" / "scripts" / "prolog.d"
        self.calls = root / "calls"
        self.programs = self.slash / "usr" / "bin"
        self.programs.mkdir(parents=True)
        self.bundle = self.bundles / BUNDLE_SHA256
        self.bundle.mkdir(parents=True)
        (self.bundle / "bootstrap").symlink_to(ASSETS / "bootstrap")
        (self.bundles / "current").symlink_to(BUNDLE_SHA256)
        (self.etc / "partitions").mkdir(parents=True)
        settings = read_settings({"family": family, **flags})
        environments = render_job_environments(settings)
        self.queue = next(iter(environments))
        for partition, text in environments.items():
            (self.etc / "partitions" / f"{partition}.env").write_text(text)
        (self.etc / "bootstrap-arguments").write_text("s3://bucket/bootstrap/training\n")
        self.be_a_parallelcluster_node()
        self.want(BUNDLE_SHA256)

    def be_a_parallelcluster_node(self) -> None:
        folder = self.slash / "etc" / "parallelcluster"
        folder.mkdir(parents=True)
        (folder / "cfnconfig").write_text(
            f"cfn_node_type=ComputeFleet\ncfn_scheduler_queue_name={self.queue}\n"
        )

    def want(self, digest: str) -> None:
        config = self.slash / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            f"HeadNode: {{CustomActions: {{OnNodeUpdated: {{Args: [bundle-sha256={digest}]}}}}}}\n"
        )

    def set_fact(self, name: str, value: str) -> None:
        with (self.etc / "partitions" / f"{self.queue}.env").open("a") as file:
            file.write(f"export {name}='{value}'\n")

    def stub(self, name: str, script: str) -> None:
        """Write a program that logs its arguments, one call per line, and runs `script`."""
        program = self.programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.calls}"\n{script}\n')
        program.chmod(0o755)

    def called(self) -> list[str]:
        """Return the calls of the programs, one per line."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def be_well(self) -> None:
        """Make it a healthy p4d node, without EFA and local disks."""
        self.set_fact("EFA_INTERFACES", "0")
        self.set_fact("SCRATCH", "")
        self.stub("journalctl", "")
        self.stub("chronyc", f"echo '{CLOCK},Normal'")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "TRAINING_ROOT": str(self.slash),
            "TRAINING_ETC": str(self.etc),
            "BUNDLE": str(self.bundle),
        }

    def install_prolog(self) -> Path:
        """Run the step that installs the prolog on a head node."""
        step = ASSETS / "bootstrap" / "steps" / "90-install-prolog.sh"
        subprocess.run(["bash", str(step)], env=self.environment | {"NODE_TYPE": "HeadNode"}, check=True)
        (prolog,) = self.prolog_folder.iterdir()
        return prolog

    def health_log(self) -> str:
        log = self.slash / "var" / "log" / "training-cluster" / "health.log"
        return log.read_text() if log.exists() else ""


def recorded(name: str) -> str:
    """Return a stub's script that prints a program's recorded output."""
    return f"cat '{RECORDED / name}'"


def gpu_node(root: Path, *, family: str = "p4d") -> HealthNode:
    """Make a node of 8 healthy GPUs, with EFA and local disks."""
    node = HealthNode(root, family=family)
    node.stub("chronyc", f"echo '{CLOCK},Normal'")
    node.stub("mountpoint", "")
    (node.slash / "scratch").mkdir()
    node.stub("journalctl", recorded("kernel-well.txt"))
    node.stub("fi_info", recorded("fi_info-p4d.txt"))
    smi(node)
    return node


def fabric_report(states: Sequence[str], *, mig: str = "N/A") -> str:
    """Return the parts of `nvidia-smi -q` that a check reads.

    Args:
        states: State, Status and Summary of each GPU's fabric, separated by commas.
    """
    report = f"Driver Version : 580.95.05\n\nAttached GPUs : {len(states)}\n"
    for number, each in enumerate(states):
        state, status, summary = each.split(",")
        report += (
            f"GPU 00000000:{number}{number}:00.0\n    Product Name                          : NVIDIA H100\n"
            f"    MIG Mode\n        Current                           : {mig}\n"
            f"        Pending                           : {mig}\n    Fabric\n"
            f"        State                             : {state}\n"
            f"        Status                            : {status}\n"
            "        CliqueId                          : 0\n        Health\n"
            f"            Summary                       : {summary}\n"
            "    Processes                             : None\n"
        )
    return report


def link_report(links: Sequence[Sequence[bool]]) -> str:
    """Return the text of `nvidia-smi nvlink --status`; True is a link that is up."""
    report = ""
    for number, each in enumerate(links):
        report += f"GPU {number}: Tesla V100-SXM2-32GB (UUID: GPU-0)\n"
        for link, is_up in enumerate(each):
            report += f"\t Link {link}: {'25.781 GB/s' if is_up else '<inactive>'}\n"
    return report


def smi(
    node: HealthNode,
    *,
    gpus: str = "list-gpus-8.txt",
    errors: str = "ecc-a100-well.txt",
    rows: str = "rows-well.txt",
    status: int = 0,
    report: str = fabric_report(["N/A,N/A,N/A"] * 8),
    links: str = link_report([[True] * 12] * 8),
    modes: str = "Disabled",
    programs: str = "",
) -> None:
    (node.root / "report").write_text(report)
    (node.root / "links").write_text(links)
    node.stub(
        "nvidia-smi",
        f'case "$1" in\n--list-gpus) {recorded(gpus)} ;;\n-q) cat {node.root}/report ;;\n'
        f"nvlink) cat {node.root}/links ;;\n--query-gpu=mig.mode.current) echo '{modes}' ;;\n"
        f"--query-compute-apps=pid) printf '{programs}' ;;\n--query-gpu=*) {recorded(errors)} ;;\n"
        f"--query-remapped-rows=*) {recorded(rows)} ;;\nesac\nexit {status}",
    )
    node.stub("python3", "")  # gpu_cuda.py has tests of its own


def check(node: HealthNode, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(HEALTH / "check-node.sh"), node.queue],
        env=node.environment | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def found(node: HealthNode) -> str:
    """Return the reason of an unhealthy node."""
    done = check(node)
    assert done.returncode == UNHEALTHY, done
    return done.stdout.strip()
