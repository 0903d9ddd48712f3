"""The combinations of flags: every family x capacity x OS, every size, every feature x OS."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ops.importing.command import import_config
from rehearsal.validation.samples import Config, import_samples
from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.family import CapacityType, Family
from training_cluster.flags.file import read_flags
from training_cluster.rules.context import read_settings

CAPACITIES: tuple[CapacityType, ...] = get_args(CapacityType)
OS_NAMES: tuple[str, ...] = get_args(Family.model_fields["os"].annotation)

NODES = 2

# Placeholders in flags, whose values are created on the local AWS (foundation.py).
RESERVATION = "{reservation}"
IMAGE = "{image}"
SECRET = "{secret}"  # noqa: S105

# Features of the cluster, on the family for which each is meant.
FEATURES: dict[str, dict[str, str]] = {
    "cpu queue": {"cpu_queue": "on"},
    "cpu queue with EFA": {"cpu_queue": "m6i.32xlarge"},
    "login nodes": {"login_nodes": "2"},
    "accounting, new": {"accounting": "new"},
    "accounting, own": {"accounting": "db.example.com:3307", "accounting_secret": SECRET},
    "a custom AMI": {"image": IMAGE},
    "built image": {"image": "build"},
    "home on EFS": {"home": "efs"},
    "boundary and tags": {
        "permissions_boundary": "arn:aws:iam::aws:policy/PowerUserAccess",
        "tags": "team=nlp,project=gpt2",
    },
    "p3dn, official image": {"family": "p3dn", "image": "official"},
    "p3dn, own AMI": {"family": "p3dn", "image": IMAGE},
    "tied reservation": {"capacity": f"reservation:{RESERVATION}", "placement_group": "{group}"},
    "no placement group": {"placement_group": "off"},
    "block, few run": {"capacity": f"capacity-block:{RESERVATION}", "min_nodes": "1"},
    "block, in a group": {"capacity": f"capacity-block:{RESERVATION}", "placement_group": "{group}"},
    "nodes that always run": {"min_nodes": "2"},
    "other head node": {"head_node_type": "m6i.8xlarge", "head_root_gib": "500"},
    "small head node": {"head_node_type": "t3.medium", "nodes": "200"},
    "a name of 60 letters": {"cluster_name": "a" * 60},
    "41 letters, accounting": {"cluster_name": "a" * 41, "accounting": "new"},
    "private head node": {"public_access": "off", "login_nodes": "1"},
    "queues": {"queues": "rehearsal/validation/queues/several.yaml", "queue_name": "train"},
    "a type without a file": {"instance_type": "g4dn.12xlarge"},
    "arm64": {"family": "m7g", "login_nodes": "1", "cpu_queue": "c7g.4xlarge", "queue_name": "train"},
    **{
        f"overrides: {file.stem}": {"overrides": f"rehearsal/validation/overrides/{file.name}"}
        for file in sorted(Path(__file__).with_name("overrides").glob("*.yaml"))
    },
}

# Combinations that we refuse although the library would accept the config, with the reason.
REFUSED_BY_US_ALONE = {
    "block, few run": "a Capacity Block's nodes all run, whatever min_nodes says: it would have no effect",
    "block, in a group": "the library only warns that the block's capacity may not be found",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One combination; `row` and `column` are its place in the matrix."""

    row: str
    column: str
    os_name: str
    flags: dict[str, str]

    @property
    def instance_type(self) -> str:
        """Instance type of the compute nodes."""
        named = {k: v for k, v in self.flags.items() if k in {"family", "instance_type"}}
        return read_settings(named).compute_type

    @property
    def needs_reservation(self) -> bool:
        """True if it names a reservation, which exists only where EC2 has the instance type."""
        return RESERVATION in self.flags.get("capacity", "")

    @property
    def why_we_alone_refuse(self) -> str | None:
        """Reason of our refusal, if the library is known to accept it."""
        return REFUSED_BY_US_ALONE.get(self.row)

    @property
    def name(self) -> str:
        """Name for people: row, column, OS."""
        return " ".join(part for part in (self.row, self.column, self.os_name) if part)


def all_cases() -> Iterator[Case]:
    """Yield every case, in the order of the matrix."""
    for family in family_names():
        for capacity in CAPACITIES:
            flag = f"{capacity}:{RESERVATION}" if capacity in {"reservation", "capacity-block"} else capacity
            for os_name in OS_NAMES:
                yield _case(family, capacity, os_name, family=family, capacity=flag)
        for instance_type in load_family(family).sizes:
            yield _case(family, instance_type, OS_NAMES[0], family=family, instance_type=instance_type)
    for name, sample in import_samples().items():
        if name not in _NOT_JUDGED:
            yield _import(name, sample.config)
    for feature, flags in FEATURES.items():
        for os_name in OS_NAMES:
            yield _case(feature, "", os_name, **flags)


# Resources of an imported config that the local AWS lacks; the foundation has others of the same kind.
NOT_THERE = (
    *("vpc_id", "public_subnet_id", "private_subnet_id", "security_group_id", "key_name"),
    *("fsx_id", "efs_id"),
)
# Configs that name such resources in the files of queues and overrides, or an OS that the import drops. A
# nightly test deploys them (tests/slow/stacks/test_stacks_samples.py).
_NOT_JUDGED = (
    *("block", "reservation", "head-image", "named-group", "other-zones", "more-groups", "own-storage"),
    *("own-lustre", "policies-and-buckets", "other-system", "reservation-group", "reservation-each"),
    *("reserved-group-on", "managed-storage", "file-cache", "image-of-all", "several-groups", "accounting"),
    *("external-slurmdbd", "other-bucket", "login-elsewhere", "two-pools", "template", "roles", "profile"),
    "boundary",
)


def _import(name: str, config: Config) -> Case:
    """Return the case of a config that `trainctl import` translates; resources are the foundation's."""
    folder = Path(tempfile.mkdtemp()) / name
    flags = read_flags(str(import_config(config, folder).files[0]))
    kept = {flag: value for flag, value in flags.items() if flag not in NOT_THERE}
    return Case(row=f"import: {name}", column="", os_name=kept["os"], flags=kept)


def _case(row: str, column: str, os_name: str, **flags: str) -> Case:
    return Case(row=row, column=column, os_name=os_name, flags={"nodes": str(NODES), "os": os_name} | flags)
