"""Flags of the storage: how large, how fast, or which one that is there already."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, field_validator

from training_cluster.flags.cluster import AWS_ID

# FSx's rule for SCRATCH_2 and PERSISTENT_2 SSD: 1200 GiB, or a multiple of 2400 (API reference,
# CreateFileSystem's StorageCapacity). There is no largest one: what an account may have is a quota.
FSX_STEP_GIB = 2400
# With EFA, by MB/s a TiB (FSx for Lustre guide, "Getting started" and "Increasing storage capacity").
EFA_STEPS_GIB = {"1000": 4800, "500": 9600, "250": 19200, "125": 38400}


class StorageFlags(BaseModel):
    """Without ids, StorageStack makes a bucket and both file systems, and keeps them."""

    bucket_name: str | None = Field(
        None,
        pattern=r"^[a-z0-9]([a-z0-9-]|\.[a-z0-9]){1,61}[a-z0-9]$",
        description="A bucket that is there already. Default: a new one.",
    )
    fsx_id: str | None = Field(
        None,
        pattern=r"^fs-[0-9a-f]{17}$",
        description="An FSx for Lustre file system that is there already. Default: a new one.",
    )
    fsx_type: Literal["persistent2", "scratch2"] = Field(
        "persistent2",
        description="scratch2 is cheaper and not durable: a failed server takes its files along.",
    )
    fsx_gib: int = Field(
        1200, ge=1200, description="Capacity of the Lustre file system in GiB: 1200 or a multiple of 2400."
    )
    fsx_mbps_per_tib: Literal["125", "250", "500", "1000"] = Field(
        "250", description="Throughput of the Lustre file system, MB/s for each TiB of capacity."
    )
    fsx_efa: Literal["off", "on"] = Field(
        "off",
        description="on: the Lustre file system can be reached over EFA, too. Nodes of this app reach it "
        "over TCP: they do not run AWS's configure-efa-fsx-lustre-client. For its life; a multiple of 4800 "
        "GiB at 1000 MB/s a TiB, 9600 at 500, 19200 at 250, 38400 at 125.",
    )
    efs_id: str | None = Field(
        None,
        pattern=rf"^fs-{AWS_ID}$",
        description="An EFS file system that is there already. Default: a new one.",
    )
    efs_mibps: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Provisioned throughput of the EFS file system, MiB/s, paid by the hour. Default: "
        "elastic, paid by what is read and written.",
    )
    home: Literal["ebs", "efs"] = Field(
        "ebs",
        description="Where /home lies: on the head node's disk, or on EFS (and /efs in it). Kept for a "
        "cluster's life.",
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
