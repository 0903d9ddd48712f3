"""Sizes and seconds of what jobs write to shared storage and read from it, and the flags that suffice.

`trainctl price`, `submit` and `preflight` and the advice of `cdk synth` calculate with this module alone.
None of its seconds was measured on AWS.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from training_cluster.catalog.families import load_base
from training_cluster.flags.settings import Settings
from training_cluster.flags.storage import EFA_STEPS_GIB, FSX_STEP_GIB

GIB = 2**30
SCRATCH = "scratch2"
_MBPS_PER_TIB = {
    SCRATCH: (100, 200),
    "125": (125, 320),
    "250": (250, 640),
    "500": (500, 1300),
    "1000": (1000, 2600),
}
"""MB/s for each TiB that disks write, and that servers send of files in their memory; both without bursts
(FSx for Lustre guide, "Performance characteristics of SSD and HDD storage classes")."""
SMALLEST_GIB = 1200
SAVING_SHARE = 0.05
"""Most of the time between two saves that one should take."""
SHORT_SAVE_S = 30
"""Seconds of a save that are short enough for any interval: a small model needs no faster file system."""
FILLED = 0.8
"""Most of a recommended file system that checkpoints fill: a house rule, for data and environments."""
IMAGE_BYTES = 20e9
"""Assumed size of a container image, or an environment with CUDA (docs/how-to/containers.md)."""
LONG_START_S = 600
"""Seconds of reading images at the start of a job from which people are told."""
NFS_NODES = 100
"""Nodes beyond which ParallelCluster 3.16.1 calls the head node's network a bottleneck of what it exports by
NFS (SharedEbsPerformanceBottleNeckValidator, which judges EBS volumes of SharedStorage)."""
EFS_GIBPS = (20, 1)
"""GiB/s that nodes read from an elastic, regional EFS file system, and write to it, where its limits are
lowest (EFS guide, "Performance specifications")."""
# What a cluster is taken to train where no model is given.
_TOKENS_OF_PARAMETER = 20  # compute-optimal (arXiv 2203.15556, table 3)
_DAYS, _SAVE_EVERY_S, _MOST = 30, 1800.0, 3  # assumed; two kept, as by default, and one being written
_PEAK_SHARE = 0.4  # trainkit/fitting.py has the source
_STATE_BYTES = 12  # of a parameter: fp32, with AdamW's two moments (trainkit/sizes.py)


class Saves(BaseModel):
    """Checkpoints of a run, as a workload's check_job and expect_job return them."""

    model_config = ConfigDict(frozen=True)

    bytes: int = Field(ge=0)
    """Size of a checkpoint."""
    most: int = Field(ge=1)
    """Checkpoints that exist at the same time: those kept, and one that is being written."""
    every_s: float = Field(ge=0)
    """Estimated seconds of training between two saves; 0 if they are not known."""
    every_steps: int = Field(default=0, ge=0)
    """Steps between two saves, CHECKPOINT_EVERY; 0 if they are not known."""
    steps: int = Field(default=0, ge=0)
    """Steps of the run; 0 if they are not known."""


@dataclass(frozen=True, kw_only=True)
class Lustre:
    """Size and speed of a Lustre file system; 0 MB/s if that is not known."""

    bytes: float
    write_mbps: float
    read_mbps: float

    def fits(self, saves: Saves) -> int:
        """Return the number of checkpoints for which there is room."""
        return int(self.bytes // max(saves.bytes, 1))

    def can_keep(self, saves: Saves) -> bool:
        """Return True if there is room for all checkpoints of a run."""
        return self.fits(saves) >= saves.most

    def save_s(self, saves: Saves) -> float:
        """Return the seconds of a save; 0 if they are not known."""
        return saves.bytes / 1e6 / self.write_mbps if self.write_mbps else 0.0

    def suffices(self, saves: Saves, share: float = SAVING_SHARE) -> bool:
        """Return True if all checkpoints fit, and a save takes at most a share of the time between two."""
        is_fast = not saves.every_s or self.save_s(saves) <= max(share * saves.every_s, SHORT_SAVE_S)
        return self.can_keep(saves) and is_fast

    def image_s(self, nodes: int) -> float:
        """Return the seconds in which so many nodes read an image of IMAGE_BYTES; 0 if they are not known."""
        return nodes * IMAGE_BYTES / 1e6 / self.read_mbps if self.read_mbps else 0.0


def lustre(gib: float, mbps_per_tib: str) -> Lustre:
    """Return the file system of a capacity and a throughput: MB/s for each TiB, or scratch2."""
    write, read = _MBPS_PER_TIB.get(mbps_per_tib, (0, 0))
    return Lustre(bytes=gib * GIB, write_mbps=gib * write / 1024, read_mbps=gib * read / 1024)


def lustre_of(settings: Settings) -> Lustre | None:
    """Return the file system of the flags; None for an existing one."""
    if settings.fsx_id:
        return None
    return lustre(settings.fsx_gib, SCRATCH if settings.fsx_type == SCRATCH else settings.fsx_mbps_per_tib)


def expected_saves(settings: Settings) -> Saves | None:
    """Return the checkpoints of the largest model that the first queue trains in a month; None for CPUs.

    N parameters and 20 N tokens take 6 N x 20 N operations, at 40 % of the peak.
    """
    peak = settings.family_facts.accelerator.peak_bf16_tflops
    accelerators = settings.nodes * settings.size.accelerators
    if not (peak and accelerators):
        return None
    operations = accelerators * peak * 1e12 * _PEAK_SHARE * _DAYS * 86400
    parameters = math.sqrt(operations / 6 / _TOKENS_OF_PARAMETER)
    return Saves(bytes=round(_STATE_BYTES * parameters), most=_MOST, every_s=_SAVE_EVERY_S)


def estimated_save_s(settings: Settings, saves: Saves | None) -> float:
    """Return the seconds of a save, of the expected one without a job's; 0 if they are not known."""
    storage, saves = lustre_of(settings), saves or expected_saves(settings)
    return storage.save_s(saves) if storage and saves else 0.0


def about_expected(settings: Settings, saves: Saves) -> str:
    """Return the sentence that says which model is assumed."""
    return (
        f"no model is given: {settings.nodes} nodes train about {saves.bytes / _STATE_BYTES / 1e9:,.0f} "
        f"billion parameters in {_DAYS} days ({_TOKENS_OF_PARAMETER} tokens each, {_PEAK_SHARE:.0%} of the "
        f"peak), and save every {duration(saves.every_s)} (assumed)"
    )


def sufficient_flags(saves: Saves, settings: Settings) -> str:
    """Return the flags of the cheapest new, durable file system that suffices, with its price a month."""
    found, efa = [], settings.fsx_efa == "on"
    for speed, efa_step in EFA_STEPS_GIB.items():
        gib = _capacity_gib(saves, int(speed) / 1024, efa_step if efa else 0)
        if price := load_base().prices.lustre_gb_month("PERSISTENT_2", speed):
            found.append((gib * price.usd, gib, speed, "" if price.confirmed else ", price unconfirmed"))
    usd, gib, speed, doubt = min(found)
    durable = "-c fsx_type=persistent2 " if settings.fsx_type == SCRATCH else ""
    return f"{durable}-c fsx_gib={gib} -c fsx_mbps_per_tib={speed} ({usd:,.0f} USD a month{doubt})"


def efa_step_gib(fsx_efa: object, fsx_mbps_per_tib: object) -> int:
    """Return the step of the capacity that these flags require; 0 without EFA."""
    return EFA_STEPS_GIB.get(str(fsx_mbps_per_tib), 0) if fsx_efa == "on" else 0


def grown_gib(saves: Saves, storage: Lustre, efa_step: int = 0) -> int:
    """Return the capacity to which a deployed file system has to grow; its speed grows with it.

    It can only grow, and another speed is another deploy (assets/guard/transitions.py).
    """
    own = _rounded_up(storage.bytes / GIB)  # df counts without Lustre's own data
    return max(own, _capacity_gib(saves, storage.write_mbps / own, efa_step))


def grow_command(saves: Saves, storage: Lustre, id_: str = "...") -> str:
    """Return the command that lets a file system suffice which no stack of the app owns (fsx_id)."""
    gib = grown_gib(saves, storage)
    return f"aws fsx update-file-system --file-system-id {id_} --storage-capacity {gib}"


def _capacity_gib(saves: Saves, mbps_per_gib: float, efa_step: int = 0) -> int:
    """Return the least capacity that suffices; a speed of 0 is not known."""
    least = saves.bytes * saves.most / FILLED / GIB
    if saves.every_s and mbps_per_gib:
        within_s = max(SAVING_SHARE * saves.every_s, SHORT_SAVE_S)
        least = max(least, saves.bytes / 1e6 / within_s / mbps_per_gib)
    return math.ceil(least / efa_step) * efa_step if efa_step else _rounded_up(least)


def _rounded_up(gib: float) -> int:
    return SMALLEST_GIB if gib <= SMALLEST_GIB else math.ceil(gib / FSX_STEP_GIB) * FSX_STEP_GIB


def about_room(saves: Saves, storage: Lustre) -> str:
    """Return the sentence about the checkpoints that fit."""
    gib = storage.bytes / GIB
    return (
        f"a checkpoint has {saves.bytes / 1e9:,.1f} GB: the {gib:,.0f} GiB of Lustre have room for "
        f"{storage.fits(saves)}, and a run has up to {saves.most} (those kept, and one being written)"
    )


def about_saves(saves: Saves, storage: Lustre, mend: str) -> Iterator[str]:
    """Yield sentences about room and time of checkpoints, and what to type if these do not suffice."""
    yield about_room(saves, storage) + ("" if storage.can_keep(saves) else ": trainctl submit refuses it")
    if took := storage.save_s(saves):
        share = f"{took / saves.every_s:.0%} of the {duration(saves.every_s)}" if saves.every_s else ""
        part = f", {share} between two" if share else ""
        yield f"a save takes {duration(took)} at {storage.write_mbps:,.0f} MB/s{part}"
    if not storage.suffices(saves):
        aim = f"saves in {SAVING_SHARE:.0%} of the time" if saves.every_s else f"{saves.most} checkpoints"
        yield f"for {aim}: {mend}"
    if storage.can_keep(saves) and not storage.suffices(saves):
        longer_s = took / SAVING_SHARE
        steps = math.ceil(saves.every_steps * longer_s / saves.every_s)
        if not saves.steps or steps < saves.steps:
            yield (
                f"or, at no cost, CHECKPOINT_EVERY={steps or '...'}: a save each {duration(longer_s)}, so "
                "that an interruption loses more"
            )


def image_readers(nodes: int, *, have_disks: bool) -> int:
    """Return how many nodes read an image: with local disks one, and Slurm passes it on to the others."""
    return 1 if have_disks else nodes


def readers_of(settings: Settings) -> int:
    """Return how many nodes of the first queue read an image from shared storage."""
    return image_readers(settings.nodes, have_disks=bool(settings.size.nvme_gb))


def about_image(readers: int, storage: Lustre) -> str:
    """Return the sentence about an image that so many nodes read from the file system."""
    took = f"{duration(storage.image_s(readers))} at the {storage.read_mbps:,.0f} MB/s of Lustre's network"
    image = f"an image or environment of {IMAGE_BYTES / 1e9:.0f} GB (assumed)"
    if readers == 1:
        return f"one node reads {image} in {took}, and Slurm passes it on to the local disks of the others"
    return (
        f"{readers} nodes without local disks that each read {image} take {took}; "
        "-c image=build brings environments in the AMI"
    )


def about_head_node(settings: Settings, config: Mapping[str, Any]) -> str:
    """Return what more than NFS_NODES nodes read from the head node, and what to type; "" for nothing."""
    nfs = {"/home": "-c home=efs"} if settings.home == "ebs" else {}
    if str(config["HeadNode"].get("SharedStorageType", "Ebs")).lower() != "efs":
        nfs["/opt/slurm"] = "-c overrides=FILE with HeadNode: {SharedStorageType: Efs}"
    queues = config["Scheduling"]["SlurmQueues"]
    nodes = sum(each["MaxCount"] for queue in queues for each in queue["ComputeResources"])
    if nodes <= NFS_NODES or not nfs:
        return ""
    read, write = EFS_GIBPS
    return (
        f"{nodes} nodes mount {' and '.join(nfs)} from the head node, whose network is a "
        f"bottleneck beyond {NFS_NODES} nodes (ParallelCluster). EFS carries at least {read} GiB/s of reads "
        f"and {write} GiB/s of writes. It stays for a cluster's life: before the first deploy, type "
        f"{' and '.join(nfs.values())}"
    )


def about_storage(
    settings: Settings, config: Mapping[str, Any], saves: Saves | None = None
) -> tuple[str, ...]:
    """Return every sentence about the storage of a cluster.

    Args:
        config: the final cluster config.
        saves: checkpoints of a job on all nodes of the first queue; None for the expected ones.
    """
    said = []
    if (storage := lustre_of(settings)) is None:
        said.append(f"fsx_id={settings.fsx_id}: trainctl preflight asks FSx for its size and speed")
    else:
        if not saves and (saves := expected_saves(settings)):
            said.append(about_expected(settings, saves))
        if saves:
            said += about_saves(saves, storage, sufficient_flags(saves, settings))
        said.append(about_image(readers_of(settings), storage))
    return (*said, *filter(None, (about_head_node(settings, config),)))


def duration(seconds: float) -> str:
    """Return seconds in the unit that people would use."""
    if seconds < 120:  # noqa: PLR2004
        return f"{seconds:.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"  # noqa: PLR2004
