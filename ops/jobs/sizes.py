"""Checks of a job's checkpoints and image against the shared file system, before nodes start."""

import json
from collections.abc import Mapping

from ops.account.deploy_command import deploy_command
from ops.account.deployed_flags import flags_or_none
from ops.account.head_node import HeadNode
from ops.usage import OpsError
from training_cluster.catalog.families import load_base
from training_cluster.sizing import (
    GIB,
    LONG_START_S,
    Lustre,
    Saves,
    about_image,
    about_room,
    about_saves,
    efa_step_gib,
    grow_command,
    grown_gib,
    image_readers,
)


def check_sizes(
    answer: str, facts: Mapping[str, str], head_node: HeadNode, *, nodes: int, reads_image: bool
) -> tuple[str, ...]:
    """Refuse a run whose checkpoints the file system cannot hold; return notes about what takes long.

    Args:
        answer: JSON that the workload's check_job returned: its checkpoints, or null.
        facts: environment of the jobs of these nodes (cluster/job_environment.py).
        nodes: number of nodes of the job.
        reads_image: True if the nodes run a container image.

    Raises:
        OpsError: the file system is too small.
        botocore's errors.
    """
    if not (read := json.loads(answer or "null")):
        return ()
    saves, folder = Saves.model_validate(read), load_base().shared_dir
    listed = head_node.run("df", "--output=size,avail", "--block-size=1", folder, reads_only=True).split()
    size, free = map(int, listed[-2:])
    write, sent = (float(facts.get(name) or 0) for name in ("SHARED_MBPS", "SHARED_READ_MBPS"))
    storage = Lustre(bytes=size, write_mbps=write, read_mbps=sent)
    # Of an existing file system (fsx_id) the facts have no speed.
    mend = grow_command(saves, storage)
    if write and not storage.suffices(saves):
        flags = flags_or_none(head_node.cluster_name, head_node.client) or {}
        step = efa_step_gib(flags.get("fsx_efa"), flags.get("fsx_mbps_per_tib"))
        mend = deploy_command(head_node.cluster_name, f"fsx_gib={grown_gib(saves, storage, step)}")
    if not storage.can_keep(saves):
        fewer = "--set KEEP_CHECKPOINTS=1, or " if storage.fits(saves) > 1 else ""
        raise OpsError(f"The run could not save: {about_room(saves, storage)}.\n  type:    {fewer}{mend}")
    notes = [] if storage.suffices(saves) else ["; ".join(about_saves(saves, storage, mend))]
    if free < saves.bytes * saves.most:
        notes.append(
            f"Lustre has {free / GIB:,.0f} GiB free: make room, or a new run ends before its first step"
        )
    readers = image_readers(nodes, have_disks=bool(facts.get("SCRATCH")))
    if reads_image and storage.image_s(readers) > LONG_START_S:
        notes.append(about_image(readers, storage))
    return tuple(notes)
