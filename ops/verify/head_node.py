"""Checks on the head node, by one script that only reads."""

import datetime
import re

from ops.verify.check import Check
from ops.verify.scene import Scene, UnseenError
from training_cluster.catalog.families import load_base

_SCRIPT = "owner root, not writable by others"


def _fact(scene: Scene, key: str) -> str:
    """Return a fact about the head node. Raises UnseenError if it cannot be read there."""
    value = scene.inspected.get(key, "")
    if value in ("", "unreadable"):
        raise UnseenError(f"the head node does not show {key} to the cluster's user")
    return value


def _lustre_is_mounted(scene: Scene) -> tuple[bool, str]:
    type_ = _fact(scene, "mount-lustre")
    return type_ == "lustre", f"{load_base().shared_dir} is {type_}"


def _efs_is_mounted(scene: Scene) -> tuple[bool, str]:
    type_ = _fact(scene, "mount-efs")
    return type_ == "nfs4", f"{load_base().efs_dir} is {type_}"


def _scripts_are_of_root(scene: Scene) -> tuple[bool, str]:
    shown = _fact(scene, "script")
    owner, mode = shown.split()
    return owner == "root" and mode[5] != "w" and mode[8] != "w", shown


def _steps_ended_well(scene: Scene) -> tuple[bool, str]:
    shown = _fact(scene, "bootstrap")
    return not shown.startswith("0 lines") and shown.endswith(" 0 failed steps"), shown


def _cfn_init_ended_well(scene: Scene) -> tuple[bool, str]:
    if scene.inspected.get("cfn-init") == "unreadable":
        raise UnseenError("only root may read /var/log/cfn-init.log here")
    begin, end = (
        datetime.datetime.fromisoformat(_fact(scene, f"cfn-init-{name}")) for name in ("begin", "end")
    )
    errors = _fact(scene, "cfn-init-errors")
    minutes = (end - begin).total_seconds() / 60
    return errors == "0", f"{minutes:.1f} minutes, {errors} errors"


def _containers_are_enabled(scene: Scene) -> tuple[bool, str]:
    has = {key: _fact(scene, key) for key in ("pyxis", "pyxis-enabled", "enroot")}
    shown = ", ".join(f"{key}: {value}" for key, value in has.items())
    return has["pyxis"] == "no" or has["pyxis-enabled"] == "yes", shown


def _tree_is_read(scene: Scene) -> tuple[bool, str]:
    shown = _fact(scene, "topology")
    written, read = (int(number) for number in re.findall(r"(\d+) ", shown))
    return written == read, shown


CHECKS = (
    Check(
        id="lustre-mounted",
        claim="The shared folder is FSx for Lustre on the head node.",
        expected=f"{load_base().shared_dir} is lustre",
        not_in_rehearsal="No file system is mounted: it is a folder.",
        look=_lustre_is_mounted,
        only_on_aws=True,
    ),
    Check(
        id="efs-mounted",
        claim="EFS is mounted on the head node.",
        expected=f"{load_base().efs_dir} is nfs4",
        not_in_rehearsal="No file system is mounted: it is a folder.",
        look=_efs_is_mounted,
        only_on_aws=True,
    ),
    Check(
        id="training-scripts",
        claim="The training scripts exist, and only root can write to them.",
        expected=_SCRIPT,
        not_in_rehearsal="The owner is whoever rehearses.",
        look=_scripts_are_of_root,
        only_on_aws=True,
    ),
    Check(
        id="bootstrap-steps",
        claim="Each bootstrap step of the head node succeeded.",
        expected="0 failed steps in /var/log/training-cluster/bootstrap.log",
        not_in_rehearsal="Steps that are for ParallelCluster's nodes only.",
        look=_steps_ended_well,
        only_on_aws=True,
    ),
    Check(
        id="cfn-init",
        claim="cfn-init configured the head node without an error.",
        expected="0 errors in /var/log/cfn-init.log",
        not_in_rehearsal="cfn-init: no recipe of ParallelCluster runs.",
        look=_cfn_init_ended_well,
        only_on_aws=True,
    ),
    Check(
        id="containers",
        claim="Pyxis is enabled where the head node's image has it, so that jobs can use containers.",
        expected="pyxis-enabled: yes, if pyxis: yes",
        not_in_rehearsal="Pyxis and Enroot: this machine has neither.",
        look=_containers_are_enabled,
        only_on_aws=True,
    ),
    Check(
        id="topology",
        claim="Slurm has read the tree of EC2's network that the head node wrote, if EC2 has placed nodes.",
        expected="as many leaves read as written, ten minutes after the last new place; 0 without a tree",
        not_in_rehearsal="EC2's answer: the nodes are processes.",
        look=_tree_is_read,
        only_on_aws=True,
    ),
)
