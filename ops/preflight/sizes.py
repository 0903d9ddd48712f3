"""Checks of the file systems' sizes and speeds against the nodes."""

from collections.abc import Iterator

from ops.account.session import ClientOf, unless
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.sizing import (
    LONG_START_S,
    SCRATCH,
    Lustre,
    about_expected,
    about_head_node,
    about_image,
    about_saves,
    efa_step_gib,
    expected_saves,
    grow_command,
    grown_gib,
    lustre,
    lustre_of,
    readers_of,
    sufficient_flags,
)
from training_cluster.stack_names import STORAGE_STACK


def check_sizes(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check that the nodes' checkpoints fit and are written in time, and what all nodes read at once."""
    storage, saves = lustre_of(settings) or _existing(settings, client), expected_saves(settings)
    if storage and saves:
        mend = sufficient_flags(saves, settings)
        if settings.fsx_id:
            mend = grow_command(saves, storage, settings.fsx_id)
        elif existing.has(STORAGE_STACK):
            step = efa_step_gib(settings.fsx_efa, settings.fsx_mbps_per_tib)
            mend = f"-c fsx_gib={grown_gib(saves, storage, step)}"
        yield finding(
            "Lustre: checkpoints",
            "; ".join((about_expected(settings, saves), *about_saves(saves, storage, mend))),
            good=storage.suffices(saves, share=1),  # else the next save comes before this one ends
            otherwise="warning",
            mend=mend,
        )
    if storage and storage.image_s(readers_of(settings)) > LONG_START_S:
        mend, words = "-c image=build", about_image(readers_of(settings), storage)
        yield Finding(check="Lustre: images", found=words, verdict="warning", mend=mend)
    if words := about_head_node(settings, config_before_deploy(settings)):
        found, _, mend = words.partition(" type ")
        yield Finding(check="head node: NFS", found=found, verdict="warning", mend=mend)


def _existing(settings: Settings, client: ClientOf) -> Lustre | None:
    """Return an existing file system; None without one, which another check reports."""
    fsx, ids = client("fsx"), [str(settings.fsx_id)]
    answer = unless(lambda: fsx.describe_file_systems(FileSystemIds=ids), "FileSystemNotFound")
    for each in answer["FileSystems"] if answer else []:
        given = each.get("LustreConfiguration", {})
        is_scratch = given.get("DeploymentType") == "SCRATCH_2"
        speed = SCRATCH if is_scratch else str(given.get("PerUnitStorageThroughput"))
        return lustre(each["StorageCapacity"], speed)
    return None
