"""Models of one instance family, a file of cluster_configs/, and of the images of its nodes."""

import datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from training_cluster.problems import ConfigurationError, did_you_mean

UNCONFIRMED = "unconfirmed"
CapacityType = Literal["ondemand", "spot", "reservation", "capacity-block"]
QUEUE_NAME = r"^[a-z][a-z0-9-]{0,24}$"
INSTANCE_TYPE = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"
AWS_ID = "(?:[0-9a-f]{8}|[0-9a-f]{17})"
"""Pattern of the digits of an AWS id: 17, or 8 in old resources."""
RESERVATIONS = rf"(?:cr-{AWS_ID}|arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{{12}}:group/[\w.-]+)"
"""A capacity reservation's id, or the ARN of a resource group of reservations."""
Architecture = Literal["x86_64", "arm64"]


class Strict(BaseModel):
    """Base of the catalog's models: no unknown key, no change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Accelerator(Strict):
    """GPU or Trainium chip of a family; kind `none` is a family that computes on CPUs."""

    kind: Literal["gpu", "neuron", "none"]
    name: str
    memory_gib: float = Field(ge=0, description="of one accelerator")
    cores: int = Field(ge=0, description="ranks that one accelerator takes: 1 a GPU, its NeuronCores")
    compute_capability: str | None = Field(
        None, pattern=r"^\d+\.\d$", description="of an NVIDIA GPU: what an image's parts are compiled for"
    )
    peak_bf16_tflops: float | None = Field(
        description="of one accelerator, dense; fp16 where it has no bf16. The denominator of MFU"
    )


class Size(Strict):
    """One instance type of a family; a file's own facts are sockets, cores and price, others are EC2's."""

    accelerators: int = Field(ge=0)
    vcpus: int = Field(gt=0)
    memory_gib: int = Field(gt=0)
    sockets: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int = Field(gt=0)
    network_cards: int = Field(gt=0)
    efa_interfaces: int = Field(ge=0)
    network_gbps: float | None
    nvme_gb: int | None = Field(description="all local disks together; 0 for none")
    usd_per_hour: float | None = Field(None, description="on demand, us-east-1, one node")
    capacity: tuple[CapacityType, ...] | None = Field(
        None, description="where this size is sold otherwise than its family"
    )

    @property
    def efa(self) -> bool:
        """True when its nodes communicate over EFA."""
        return self.efa_interfaces > 0


class EnvironmentVariable(Strict):
    """One variable of a job's environment, with its reader and the reason for its value."""

    name: str = Field(pattern=r"^[A-Z][A-Z0-9_]*$")
    value: str = Field(pattern=r"""^[^'"$`\\}\n]*$""")
    since: str = Field(description="the software, and its version, that reads it")
    reason: str


class NcclFloor(Strict):
    """The least bus bandwidth of all_reduce_perf that a healthy set of nodes reaches."""

    nodes: int = Field(gt=0)
    message_gib: float = Field(gt=0)
    busbw_gb_per_s: float = Field(gt=0)
    source: str = Field(alias="from")


class Family(Strict):
    """One instance family: the facts of one YAML file of the catalog."""

    name: str
    main_size: str = Field(description="the instance type that is taken unless another is asked for")
    queue: str = Field(pattern=QUEUE_NAME, description="name of its Slurm partition")
    accelerator: Accelerator
    mixed_precision: Literal["bf16", "fp16", "no"]
    os: Literal["ubuntu2204", "ubuntu2404", "alinux2023"] = Field(
        "ubuntu2404",
        description="what nodes run unless asked otherwise; the oldest whose Python all workloads take",
    )
    architecture: Architecture = Field("x86_64", description="of its processors")
    image_recipe: Literal["gpu", "volta", "neuron", "cpu"]
    official_image_refused: str | None = Field(
        None, description="why ParallelCluster's own AMI does not run on it; such a family builds one"
    )
    notice: str | None = Field(
        None, description="announcement about the software that trains on it, with date and address"
    )
    capacity: tuple[CapacityType, ...]
    pcluster_min_version: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    head_node_type: str = Field(pattern=INSTANCE_TYPE)
    head_root_gib: int = Field(gt=0)
    compute_root_gib: int = Field(gt=0)
    sizes: dict[str, Size]
    slurm_topology: str | None = Field(
        None, description="why Slurm needs sockets and cores; without it ParallelCluster's own line remains"
    )
    price_date: datetime.date
    zones: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="zone ids that are known to have it, by region"
    )
    job_environment: tuple[EnvironmentVariable, ...]
    nccl_floors: tuple[NcclFloor, ...]
    links: dict[str, str] = Field(
        default_factory=dict, description="other paths of the shared folders, link -> folder"
    )
    sources: dict[str, str] = Field(description="fact -> where it is from; base.yaml has the usual ones")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.main_size not in self.sizes:
            raise ValueError(f"main_size {self.main_size} is not among sizes: {', '.join(self.sizes)}")
        if unknown := [fact for fact in self.sources if fact not in FACTS]:
            raise ValueError(f'sources: no fact "{unknown[0]}".{did_you_mean(unknown[0], FACTS)}')
        if self.accelerator.kind == "gpu" and self.accelerator.compute_capability is None:
            raise ValueError('accelerator: a GPU has a compute_capability, such as "9.0" (NVIDIA\'s list)')
        gaps = sorted(self._unknown_facts() - {k for k, v in self.sources.items() if UNCONFIRMED in v})
        if gaps:
            raise ValueError(f"sources: {gaps[0]} has no value (null): say `{gaps[0]}: {UNCONFIRMED}`")
        return self

    def _unknown_facts(self) -> set[str]:
        unknown = {
            name
            for size in self.sizes.values()
            for name, value in size
            if value is None and name not in {"capacity", "cores_per_socket"}  # known with its sockets
        }
        accelerates = self.accelerator.kind != "none"
        if accelerates and self.accelerator.peak_bf16_tflops is None:
            unknown.add("accelerator.peak_bf16_tflops")
        return unknown

    def size(self, instance_type: str) -> Size:
        """Return the facts of one of its instance types.

        Raises:
            ConfigurationError: the family has no such type.
        """
        if instance_type not in self.sizes:
            raise ConfigurationError(
                f'family {self.name} has no "{instance_type}".{did_you_mean(instance_type, self.sizes)} '
                f"Allowed: {', '.join(self.sizes)}"
            )
        return self.sizes[instance_type]

    def capacity_of(self, instance_type: str) -> tuple[CapacityType, ...]:
        """Return the purchase options of one of its instance types."""
        return self.size(instance_type).capacity or self.capacity


class ImageRecipe(Strict):
    """Content of a recipe's images, and the instance that builds them."""

    description: str = Field(max_length=200, description="content other than the steps' packages")
    build_instance_type: str = Field(pattern=INSTANCE_TYPE, description="no GPU is needed to compile for one")
    root_gib: int = Field(
        gt=0, description="root volume of the image; at most the root volume of any queue that takes it"
    )
    usual_min: int = Field(gt=0, description="minutes of a build with its test, as estimated")


# Every fact that has a source: facts of the family, of its accelerator, of its sizes.
FACTS = (
    *(f"accelerator.{name}" for name in Accelerator.model_fields if name != "kind"),
    *(name for name in Size.model_fields if name != "capacity"),
    "capacity",
    "os",
    "mixed_precision",
    "pcluster_min_version",
    "head_node_type",
    "head_root_gib",
    "compute_root_gib",
    "zones",
)
