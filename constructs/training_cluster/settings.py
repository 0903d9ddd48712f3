"""Every context flag of the app: typed, described, checked one by one and against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from training_cluster.families import Family, family_names, load_family
from training_cluster.problems import ConfigurationError, did_you_mean

PCLUSTER_VERSION = "3.16.1"
"""AWS ParallelCluster's version; follows requirements-pcluster.txt (tests/unit/test_layout.py)."""

# Names that our own stacks take in the account; ParallelCluster's stack is named as the cluster.
STACK_NAMES = ("NetworkStack", "StorageStack", "ImageStack", "TrainingClusterStack")

# FSx's rule for PERSISTENT_2 SSD: 1200 GiB, or a multiple of 2400.
_FSX_STEP_GIB = 2400


class Settings(BaseModel):
    """The app's public interface: `cdk deploy TrainingClusterStack -c flag=value`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str = Field(
        "p4d", description="Instance family of the compute nodes: a file of cluster_configs/."
    )
    nodes: int = Field(2, ge=1, le=1000, description="Most compute nodes that run at a time.")
    min_nodes: int = Field(
        0,
        ge=0,
        le=1000,
        description="Compute nodes that always run. 0: a node costs only while jobs want it.",
    )
    zone: str = Field(
        "auto",
        pattern=r"^(auto|[a-z]{2}(-[a-z]+)+-\d[a-z]|[a-z]{2,4}\d-az\d)$",
        description="Availability zone of everything: auto (the region's first), a name (us-east-1a) or an "
        "id (use1-az4; the same place in every account). Kept for the life of NetworkStack.",
    )
    os: Literal["ubuntu2204", "ubuntu2404", "alinux2023"] = Field(
        "ubuntu2204", description="Operating system of every node. Kept for a cluster's life."
    )
    fsx_gib: int = Field(
        1200, ge=1200, description="Capacity of the Lustre file system in GiB: 1200 or a multiple of 2400."
    )
    fsx_mbps_per_tib: Literal["125", "250", "500", "1000"] = Field(
        "250", description="Throughput of the Lustre file system, MB/s for each TiB of capacity."
    )
    cluster_name: str = Field(
        "training",
        pattern=r"^[a-zA-Z][a-zA-Z0-9-]{0,39}$",
        description="Name of the cluster. Another name is another cluster on the same network and storage.",
    )

    @field_validator("fsx_mbps_per_tib", mode="before")
    @classmethod
    def _number_as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) else value

    @field_validator("family")
    @classmethod
    def _known_family(cls, value: str) -> str:
        names = family_names()
        if value not in names:
            raise ValueError(f"no such instance family.{did_you_mean(value, names)}")
        return value

    @field_validator("fsx_gib")
    @classmethod
    def _fsx_capacity(cls, value: int) -> int:
        if value != 1200 and value % _FSX_STEP_GIB:  # noqa: PLR2004
            up = (value // _FSX_STEP_GIB + 1) * _FSX_STEP_GIB
            raise ValueError(f"FSx takes 1200 or a multiple of {_FSX_STEP_GIB}: the next is {up}")
        return value

    @field_validator("cluster_name")
    @classmethod
    def _not_a_stack(cls, value: str) -> str:
        if value.lower() in {name.lower() for name in STACK_NAMES} or value.lower() == "cdktoolkit":
            raise ValueError("that is the name of a stack of this app; a cluster becomes a stack of its own")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.min_nodes > self.nodes:
            raise ValueError(
                f"min_nodes={self.min_nodes} is more than nodes={self.nodes}. Type: -c nodes={self.min_nodes}"
            )
        return self

    @property
    def family_facts(self) -> Family:
        """The catalog's entry of the chosen family."""
        return load_family(self.family)

    @property
    def stack_name(self) -> str:
        """CloudFormation name of TrainingClusterStack for this cluster."""
        return (
            "TrainingClusterStack"
            if self.cluster_name == "training"
            else f"TrainingClusterStack-{self.cluster_name}"
        )

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Settings:
        """Read the flags out of the CDK context; keys with ':' or a leading '@' are CDK's own.

        Raises:
            ConfigurationError: an unknown flag, a wrong value, or values that contradict each other.
        """
        flags = {k: v for k, v in context.items() if ":" not in k and not k.startswith("@")}
        try:
            return cls(**flags)
        except ValidationError as error:
            raise ConfigurationError(_explain(error)) from None


def allowed_values(name: str, info: FieldInfo) -> str:
    """Say in a few words what a flag takes."""
    if name == "family":
        return ", ".join(family_names())
    if name == "zone":
        return "auto, a zone name such as us-east-1a, a zone id such as use1-az4"
    if name == "cluster_name":
        return "a letter, then letters, digits and hyphens, 40 characters at most"
    if options := getattr(info.annotation, "__args__", ()):
        return ", ".join(str(option) for option in options)
    low, high = (next((getattr(m, k) for m in info.metadata if hasattr(m, k)), None) for k in ("ge", "le"))
    if name == "fsx_gib":
        return f"{low}, or a multiple of {_FSX_STEP_GIB}"
    return f"a whole number from {low}" + (f" to {high}" if high is not None else "")


def _explain(error: ValidationError) -> str:
    problems = error.errors()
    lines = [
        f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in the context flags, nothing was done:"
    ]
    for problem in problems:
        flag = str(problem["loc"][0]) if problem["loc"] else ""
        if problem["type"] == "extra_forbidden":
            lines.append(f"  {flag}: no such flag.{did_you_mean(flag, Settings.model_fields)}")
            lines.append(f"    flags:   {', '.join(Settings.model_fields)} (docs/flags.md)")
        elif not flag:
            lines.append(f"  {problem['msg'].removeprefix('Value error, ')}")
        else:
            info = Settings.model_fields[flag]
            own = (
                problem["msg"].removeprefix("Value error, ")
                if problem["type"] == "value_error"
                else "not allowed"
            )
            lines.append(f"  {flag}={problem['input']}: {own}")
            lines.append(f"    allowed: {allowed_values(flag, info)}")
            lines.append(f"    type:    -c {flag}={info.default}")
    return "\n".join(lines)
