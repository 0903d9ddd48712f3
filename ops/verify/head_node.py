"""Checks on the head node, by commands that only read."""

from __future__ import annotations

from ops.account.clusters import Cluster
from ops.account.head_node import find_head_node
from ops.account.session import ClientOf
from ops.verify.check import Check
from training_cluster.catalog.families import load_base

_BOOTSTRAP_LOG = "/var/log/training-cluster/bootstrap.log"


def _run(cluster: Cluster, client: ClientOf, *command: str) -> str:
    return find_head_node(cluster.name, client).run(*command, reads_only=True)


def _setting(cluster: Cluster, client: ClientOf, name: str, wanted: str) -> tuple[bool, str]:
    """Compare a setting of the running slurmctld, whose values may have a unit."""
    for line in _run(cluster, client, "scontrol", "show", "config").splitlines():
        key, _, value = (part.strip() for part in line.partition("="))
        if key == name:
            return value.split(" ")[0] == wanted, f"{name}={value}"
    return False, f"no {name}"


def _requeues(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    return _setting(cluster, client, "JobRequeue", "1")


def _scales_down(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    return _setting(cluster, client, "SuspendTime", str(load_base().scaledown_idle_min * 60))


def _lustre_is_mounted(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    shared = load_base().shared_dir
    type_ = _run(cluster, client, "stat", "--file-system", "--format=%T", shared).strip()
    return type_ == "lustre", f"{shared} is {type_}"


def _scripts_are_of_root(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    shown = _run(cluster, client, "stat", "--format=%U %A", f"{load_base().shared_dir}/training/job.slurm")
    owner, mode = shown.split()
    return owner == "root" and mode[5] != "w" and mode[8] != "w", shown.strip()


def _steps_ended_well(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    lines = _run(cluster, client, "cat", _BOOTSTRAP_LOG).splitlines()
    failed = [line for line in lines if ": failed" in line]
    return bool(lines) and not failed, f"{len(failed)} failed steps in {len(lines)} lines"


CHECKS = (
    Check(
        id="slurm-requeue",
        claim="Slurm has our JobRequeue in force, so that a job survives its node.",
        expected="JobRequeue=1",
        not_in_rehearsal="ParallelCluster's recipes, which write slurm.conf on AWS.",
        look=_requeues,
    ),
    Check(
        id="slurm-scale-down",
        claim="Nodes without work are terminated after the catalog's scaledown_idle_min.",
        expected=f"SuspendTime={load_base().scaledown_idle_min * 60}",
        not_in_rehearsal="The local Slurm's time is shortened.",
        look=_scales_down,
        only_on_aws=True,
    ),
    Check(
        id="lustre-mounted",
        claim="The shared folder is FSx for Lustre on the head node.",
        expected=f"{load_base().shared_dir} is lustre",
        not_in_rehearsal="No file system is mounted: it is a folder.",
        look=_lustre_is_mounted,
        only_on_aws=True,
    ),
    Check(
        id="training-scripts",
        claim="The training scripts are there, and only root can write them.",
        expected="owner root, not writable by others",
        not_in_rehearsal="The owner is whoever rehearses.",
        look=_scripts_are_of_root,
        only_on_aws=True,
    ),
    Check(
        id="bootstrap-steps",
        claim="Each bootstrap step of the head node ended well.",
        expected=f"no failed step in {_BOOTSTRAP_LOG}",
        not_in_rehearsal="Steps that are for ParallelCluster's nodes only.",
        look=_steps_ended_well,
        only_on_aws=True,
    ),
)
