"""Model of the account's quotas that a cluster counts against: cluster_configs/quotas.yaml."""

import re
from typing import Literal

from pydantic import Field

from training_cluster.catalog.family import Strict

QuotaCapacityType = Literal["ondemand", "spot"]
"""Purchase options with vCPU quotas of their own."""
CODE = r"^L-[0-9A-F]{8}$"


class Quota(Strict):
    """One quota, as Service Quotas names it."""

    service: str = Field(description="its code in Service Quotas")
    code: str = Field(pattern=CODE)
    name: str
    source: str


class VcpuQuota(Strict):
    """One of EC2's quotas of running vCPUs, which several families share."""

    code: str = Field(pattern=CODE)
    name: str
    capacity_type: QuotaCapacityType
    families: tuple[str, ...] = Field(
        description="letters of an instance type (trn), or letters and generation (p5)"
    )
    source: str

    def counts(self, instance_type: str) -> bool:
        """Return True if instances of a type count against this quota, given the right capacity type."""
        letters = re.match(r"[a-z]+", instance_type)
        generation = re.match(r"[a-z]+\d+", instance_type)
        return any(each[0] in self.families for each in (letters, generation) if each)


class Quotas(Strict):
    """Quotas of everything that a cluster takes."""

    vcpus: tuple[VcpuQuota, ...]
    elastic_ips: Quota = Field(description="in a region")
    nat_gateways: Quota = Field(description="in one zone")
    vpcs: Quota = Field(description="in a region")
    network_interfaces: Quota = Field(description="in a region")
    gp3_tib: Quota = Field(description="capacity of all gp3 volumes in a region")
    fsx_persistent2_gib: Quota = Field(description="of all such file systems in a region")
    fsx_scratch2_gib: Quota = Field(description="of all such file systems in a region")

    def vcpu_quota(self, instance_type: str, capacity_type: QuotaCapacityType) -> VcpuQuota | None:
        """Return the quota that instances of a type count against; None if no source names it."""
        found = (each for each in self.vcpus if each.capacity_type == capacity_type)
        return next((each for each in found if each.counts(instance_type)), None)
