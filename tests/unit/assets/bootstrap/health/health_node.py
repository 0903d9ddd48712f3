"""A node's disk under one folder, with the bundle on it and programs that answer as a test likes."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from tests.unit.assets.bootstrap.step_machine import Machine
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.paths import ASSETS
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

HEALTH = ASSETS / "bootstrap" / "health"
KERNEL = (Path(__file__).parent / "kernel-well.txt").read_text()
"""Log of a healthy node's kernel."""
EFA = "".join(
    f"provider: efa\n    fabric: efa\n    domain: rdmap{number}s27-rdm\n    version: 121.0\n"
    "    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n"
    for number in (16, 32, 144, 160)
)
"""Output of fi_info on a p4d."""
UNHEALTHY = 9
NOW = "1792656000.123456789"
CLOCK = f"A9FEA97B,169.254.169.123,4,{NOW},-0.000001234,0.000002,0.000004,-12.1,0.0,0.01,0.0003,0.0001,16.1"


class HealthNode(Machine):
    """A node of ParallelCluster with what prolog.sh and check-node.sh read; its stubs are in /usr/bin."""

    def __init__(self, folder: Path, *, family: str = "p4d", **flags: str) -> None:
        super().__init__(folder)
        self.bundles, self.programs = self.bundle.parent, self.root / "usr" / "bin"
        self.prolog_folder = self.root / "opt" / "slurm" / "etc" / "scripts" / "prolog.d"
        (self.bundles / "current").symlink_to(self.bundle.name)
        settings = read_settings({"family": family, **flags})
        environments = render_job_environments(config_before_deploy(settings), settings)
        self.queue = next(iter(environments))
        for partition, text in environments.items():
            (self.etc / "partitions" / f"{partition}.env").write_text(text)
        (self.etc / "bootstrap-arguments").write_text("s3://bucket/bootstrap/training\n")
        config = f"cfn_node_type=ComputeFleet\ncfn_scheduler_queue_name={self.queue}\n"
        self.write("etc/parallelcluster/cfnconfig", config)
        self.want(self.bundle.name)

    def want(self, digest: str) -> None:
        arguments = f"{{Args: [bundle-sha256={digest}]}}"
        text = f"HeadNode: {{CustomActions: {{OnNodeUpdated: {arguments}}}}}\n"
        self.write("opt/parallelcluster/shared/cluster-config.yaml", text)

    def set_fact(self, name: str, value: str) -> None:
        with (self.etc / "partitions" / f"{self.queue}.env").open("a") as file:
            file.write(f"export {name}='{value}'\n")

    def stub(self, name: str, script: str = "") -> None:
        self.program(f"usr/bin/{name}", script)

    def be_well(self) -> None:
        """Make it a healthy p4d node, without EFA and local disks."""
        self.set_fact("EFA_INTERFACES", "0")
        self.set_fact("SCRATCH", "")
        self.stub("journalctl", "")
        self.stub("chronyc", f"echo '{CLOCK},Normal'")

    def install_prolog(self) -> Path:
        """Run the step that installs the prolog on a head node."""
        self.does("90", NODE_TYPE="HeadNode")
        (prolog,) = self.prolog_folder.iterdir()
        return prolog

    def health_log(self) -> str:
        log = self.root / "var" / "log" / "training-cluster" / "health.log"
        return log.read_text() if log.exists() else ""


def prints(text: str) -> str:
    """Return a stub's script that prints a text."""
    return f"printf '%s\\n' {shlex.quote(text.removesuffix(chr(10)))}"


def list_gpus(number: int) -> str:
    """Return a stub's script that lists GPUs."""
    return f"seq -f 'GPU %g: NVIDIA A100-SXM4-40GB (UUID: GPU-x)' 0 {number - 1}"


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
