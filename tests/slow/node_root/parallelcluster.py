"""ParallelCluster's files on a throw-away machine: files of its image, and files from before our script."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rehearsal.containers.base import CLUSTER_USER
from tests.slow.node_root.disk import Disk
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import PLACEHOLDERS
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.overrides.merge import scripts_of

REGION = "us-east-1"
_HERE = Path(__file__).parent / "stand_ins"
_IPTABLES = ("iptables", "iptables-restore", "ip6tables", "ip6tables-restore")
_STAND_INS = {
    "/usr/local/bin/aws": "aws.sh",
    "/usr/local/bin/curl": "curl.sh",
    "/usr/local/sbin/sysctl": "sysctl.sh",
    "/usr/local/bin/systemctl": "systemctl.sh",
    "/usr/local/sbin/ami_cleanup.sh": "ami-cleanup.sh",
    **{f"/usr/local/sbin/{name}": "iptables.sh" for name in _IPTABLES},
    "/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl": "cloudwatch-agent-ctl.sh",
    "/opt/slurm/bin/scontrol": "scontrol.sh",
}
# Programs of its images whose existence the steps check. Nothing is compiled, and no job runs.
_LOOKED_FOR = ("chronyc", "enroot", "g++", "git", "gpg", "hwloc-info", "make", "numactl", "nvme", "rsync")
_IS_NONE = '#!/bin/sh\necho "$0: this throw-away machine has none" >&2\nexit 1\n'
_EXAMPLES = "/opt/parallelcluster/examples"
_FILES = {
    "/opt/parallelcluster/.bootstrapped": f"aws-parallelcluster-cookbook-{PCLUSTER_VERSION}",
    "/usr/local/lib/slurm/spank_pyxis.so": "",
    "/usr/local/share/pyxis/pyxis.conf": "",
    f"{_EXAMPLES}/enroot/enroot.conf": "# Example\nENROOT_RUNTIME_PATH /somewhere\nENROOT_MOUNT_HOME no\n",
    f"{_EXAMPLES}/pyxis/pyxis.conf": "# Example\nrequired /usr/local/lib/slurm/spank_pyxis.so\n",
}


def write_image(disk: Disk) -> None:
    """Write to a disk the files of ParallelCluster's image that our scripts read or search for."""
    for path, name in _STAND_INS.items():
        disk.write(path, (_HERE / name).read_text(), mode=0o755)
    for name in _LOOKED_FOR:
        disk.write(f"/usr/bin/{name}", _IS_NONE, mode=0o755)
    for path, text in _FILES.items():
        disk.write(path, text)


def write_node(disk: Disk, *, settings: Settings, node_type: str, bundle_sha256: str) -> None:
    """Write to a disk the files that ParallelCluster writes at a node's first boot.

    Args:
        node_type: HeadNode, ComputeFleet (of the first queue) or LoginNode.
        bundle_sha256: checksum of the bundle that the cluster config names.
    """
    config = _config(settings, bundle_sha256)
    for folder in ("shared", "shared_login_nodes"):
        disk.write(f"/opt/parallelcluster/{folder}/cluster-config.yaml", yaml.safe_dump(config))
    facts = {
        "stack_name": settings.cluster_name,
        "cfn_region": REGION,
        "cfn_scheduler": "slurm",
        "cfn_ephemeral_dir": "/scratch",
        "cfn_node_type": node_type,
        "cfn_cluster_user": CLUSTER_USER,
    }
    if node_type == "ComputeFleet":
        facts["cfn_head_node_private_ip"] = "10.0.0.10"
        facts["cfn_scheduler_queue_name"] = config["Scheduling"]["SlurmQueues"][0]["Name"]
    lines = [f"{name}={value}" for name, value in facts.items()]
    disk.write("/etc/parallelcluster/cfnconfig", "\n".join((*lines, "cfn_preinstall_args=()", "")))
    logs = {"cw_logging_enabled": "true", "log_group_name": f"/aws/parallelcluster/{settings.cluster_name}"}
    disk.write("/etc/chef/dna.json", json.dumps({"cluster": logs}))


def actions(settings: Settings, node_type: str) -> list[list[str]]:
    """Return the OnNodeConfigured scripts of a type of node, each as its URL and its arguments."""
    config = _config(settings, "0" * 64)
    if node_type == "ComputeFleet":
        node = config["Scheduling"]["SlurmQueues"][0]
    elif node_type == "LoginNode":
        node = config["LoginNodes"]["Pools"][0]
    else:
        node = config["HeadNode"]
    configured = scripts_of(node["CustomActions"]["OnNodeConfigured"])
    return [[each["Script"], *each.get("Args", ())] for each in configured]


def _config(settings: Settings, bundle_sha256: str) -> dict[str, Any]:
    ids = replace(PLACEHOLDERS, bootstrap_budget_s=60)
    return render_cluster_config(settings=settings, ids=replace(ids, bundle_sha256=bundle_sha256))
