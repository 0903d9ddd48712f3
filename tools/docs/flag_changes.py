"""Effect of a flag's change on a deployed cluster, by ParallelCluster's own update policies.

A sample is the flags before and after. Both are rendered to cluster configs, and the library names the keys
that it refuses to change while nodes run, while they drain, and with a stopped fleet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ops.pcluster.update_policies import Refused, ask_library
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import PLACEHOLDERS, ResourceIds, with_existing
from training_cluster.flags.settings import Settings
from training_cluster.rules.context import read_settings

_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf"  # noqa: S105  # a name
_DATABASE = {"accounting": "db.example.com:3306", "accounting_secret": _SECRET}
_NEXT_SECRET = {"accounting_secret": _SECRET.replace("slurm", "next")}
_G5 = {"family": "g5"}
_BOUNDARY = {"permissions_boundary": "arn:aws:iam::123456789012:policy/a"}
_ANOTHER_BOUNDARY = {"permissions_boundary": "arn:aws:iam::123456789012:policy/b"}
_ONE_LOGIN_NODE = {"login_nodes": "1"}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A change of one flag."""

    flag: str
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    what: str = "another"
    """Difference between this change and the flag's other samples, such as more or fewer."""
    instead: str = "a second cluster"
    """Safe way, where the library refuses the change even with a stopped fleet."""


SAMPLES = (
    Sample(flag="family", after={"family": "p5"}, what="with the same head node (docs/families.md)"),
    Sample(flag="family", after={"family": "trn1"}, what="with another head node"),
    Sample(flag="instance_type", before=_G5, after=_G5 | {"instance_type": "g5.12xlarge"}),
    Sample(flag="nodes", after={"nodes": "4"}, what="more"),
    Sample(flag="nodes", before={"nodes": "4"}, what="fewer"),
    Sample(flag="min_nodes", after={"min_nodes": "1"}, what="more"),
    Sample(flag="min_nodes", before={"min_nodes": "1"}, what="fewer"),
    Sample(flag="capacity", after={"capacity": "spot"}, what="ondemand, spot"),
    Sample(flag="capacity", after={"capacity": "reservation:cr-0123456789abcdef0"}, what="a reservation"),
    Sample(flag="placement_group", after={"placement_group": "off"}),
    Sample(flag="image", before={"image": "ami-0123456789abcdef0"}, after={"image": "ami-0123456789abcdef1"}),
    Sample(flag="os", after={"os": "ubuntu2204"}),
    Sample(flag="head_node_type", after={"head_node_type": "m6i.8xlarge"}),
    Sample(flag="head_root_gib", after={"head_root_gib": "400"}),
    Sample(flag="compute_root_gib", after={"compute_root_gib": "400"}),
    Sample(flag="head_image", after={"head_image": "ami-0123456789abcdef0"}),
    Sample(flag="idle_minutes", after={"idle_minutes": "30"}),
    Sample(flag="exclusive", after={"exclusive": "on"}),
    Sample(flag="detailed_monitoring", after={"detailed_monitoring": "on"}),
    Sample(flag="security_groups", after={"security_groups": "sg-0123456789abcdef0"}),
    Sample(flag="cpu_queue", after={"cpu_queue": "on"}, what="on"),
    Sample(flag="cpu_queue", before={"cpu_queue": "on"}, what="off"),
    Sample(flag="public_access", after={"public_access": "off"}),
    Sample(flag="queue_name", after={"queue_name": "train"}),
    Sample(flag="login_nodes", after=_ONE_LOGIN_NODE, what="the first"),
    Sample(flag="login_nodes", before=_ONE_LOGIN_NODE, after={"login_nodes": "2"}, what="more or fewer"),
    Sample(
        flag="login_nodes",
        before=_ONE_LOGIN_NODE,
        what="none",
        instead="one stays for the cluster's life, since the library wants its count at 0 first",
    ),
    Sample(flag="accounting", after=_DATABASE),
    Sample(flag="accounting_user", before=_DATABASE, after=_DATABASE | {"accounting_user": "jobs"}),
    Sample(flag="accounting_secret", before=_DATABASE, after=_DATABASE | _NEXT_SECRET),
    Sample(flag="home", after={"home": "efs"}),
    Sample(flag="key_name", after={"key_name": "another"}),
    Sample(flag="permissions_boundary", after=_BOUNDARY),
    Sample(flag="permissions_boundary", before=_BOUNDARY, after=_ANOTHER_BOUNDARY),
    Sample(flag="permissions_boundary", before=_BOUNDARY),
    Sample(flag="node_policies", after={"node_policies": "arn:aws:iam::123456789012:policy/a"}),
    Sample(flag="read_buckets", after={"read_buckets": "my-data"}, what="the first"),
    Sample(flag="write_buckets", after={"write_buckets": "my-data"}, what="the first"),
    Sample(flag="tags", after={"tags": "team=nlp"}),
)


def refused_changes(samples: Iterable[Sample]) -> list[Refused]:
    """Ask the library about the change of each sample. Raises OpsError if it does not answer."""
    return ask_library([configs(each) for each in samples])


def configs(sample: Sample) -> tuple[dict[str, Any], dict[str, Any]]:
    """Render the cluster configs before and after a change."""
    return _config(sample.before), _config(sample.after)


def _config(flags: Mapping[str, str]) -> dict[str, Any]:
    settings = read_settings(flags)
    return render_cluster_config(settings=settings, ids=ids_of(settings))


def ids_of(settings: Settings) -> ResourceIds:
    """Return sample ids, and those of existing resources that flags name."""
    ids = replace(PLACEHOLDERS, image_id="ami-0123456789abcdef0", bootstrap_budget_s=600)
    if settings.node_image.startswith("ami-"):
        ids = replace(ids, image_id=settings.node_image)
    return with_existing(ids, settings)
