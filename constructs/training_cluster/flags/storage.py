"""Flags of the storage: size and speed of new resources, or ids of existing ones."""

from typing import Literal

from pydantic import BaseModel, field_validator

from training_cluster.flags.flag import flag, id_flag

# FSx's rule for SCRATCH_2 and PERSISTENT_2 SSD: 1200 GiB, or a multiple of 2400 (API reference,
# CreateFileSystem's StorageCapacity). Only an account's quota limits the size.
FSX_STEP_GIB = 2400
# Steps of the capacity with EFA, by MB/s a TiB (FSx for Lustre guide, "Getting started" and "Increasing
# storage capacity").
EFA_STEPS_GIB = {"1000": 4800, "500": 9600, "250": 19200, "125": 38400}


class StorageFlags(BaseModel):
    """Flags of the storage. Without ids, StorageStack makes a bucket and two file systems."""

    bucket_name: str | None = flag(
        None,
        pattern=r"^[a-z0-9]([a-z0-9-]|\.[a-z0-9]){1,61}[a-z0-9]$",
        takes="a bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens",
        example="my-bucket",
        description="An existing bucket. Default: a new one.",
        on_change="refused by the guard, because Lustre is linked to it; with fsx_id: as fsx_id",
    )
    fsx_id: str | None = flag(
        None,
        pattern=r"^fs-[0-9a-f]{17}$",
        takes="an FSx id (fs- and 17 hex digits)",
        example="fs-0123456789abcdef0",
        description="An existing FSx for Lustre file system. Default: a new one.",
    )
    fsx_type: Literal["persistent2", "scratch2"] = flag(
        "persistent2",
        description="scratch2 is cheaper and not durable: a failed server takes its files along.",
        refused_with="fsx_id",
    )
    fsx_gib: int = flag(
        1200,
        ge=1200,
        takes=f"1200, or a multiple of {FSX_STEP_GIB}",
        description="Capacity of the Lustre file system in GiB: 1200 or a multiple of 2400.",
        refused_with="fsx_id",
    )
    fsx_mbps_per_tib: Literal["125", "250", "500", "1000"] = flag(
        "250",
        description="Throughput of the Lustre file system, MB/s for each TiB of capacity.",
        on_change="live, in place (file operations may pause for minutes); refused with fsx_efa=on",
        refused_with="fsx_id",
    )
    fsx_efa: Literal["off", "on"] = flag(
        "off",
        description="on: nodes reach the Lustre file system over EFA, others over TCP: with an EFA type of "
        "Nitro v4 or later, no trn2, and an image with Lustre's module for EFA. At most 1024 interfaces of "
        "all nodes. It has not run on AWS. For its life; a multiple of 4800 GiB at 1000 MB/s a TiB, 9600 at "
        "500, 19200 at 250, 38400 at 125.",
        refused_with="fsx_id",
    )
    efs_id: str | None = id_flag(
        "fs",
        "an EFS id",
        description="An existing EFS file system. Default: a new one.",
    )
    efs_mibps: int | None = flag(
        None,
        ge=1,
        le=1024,
        example="1024",
        description="Provisioned throughput of the EFS file system, MiB/s, paid by the hour. Default: "
        "elastic, paid by what is read and written.",
        on_change="live: EFS changes it in place, once a day; alone, with no other change of storage",
        refused_with="efs_id",
    )
    home: Literal["ebs", "efs"] = flag(
        "ebs",
        description="Location of /home: on the head node's disk, or on EFS (and /efs in it). Kept for a "
        "cluster's life.",
        on_change="refused: what a cluster mounts stays for its life; a second cluster",
    )

    @field_validator("fsx_mbps_per_tib", mode="before")
    @classmethod
    def _number_as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) else value

    @field_validator("fsx_gib")
    @classmethod
    def _fsx_capacity(cls, value: int) -> int:
        if value != 1200 and value % FSX_STEP_GIB:  # noqa: PLR2004
            up = (value // FSX_STEP_GIB + 1) * FSX_STEP_GIB
            raise ValueError(f"FSx takes 1200 or a multiple of {FSX_STEP_GIB}: the next is {up}")
        return value
