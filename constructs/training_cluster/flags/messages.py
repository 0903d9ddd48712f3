"""What a person reads about a flag: what it takes, and what is wrong with the value given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from training_cluster.catalog.families import family_names
from training_cluster.catalog.workloads import load_workloads
from training_cluster.flags.cluster import NO_WORKLOADS, PCLUSTER_VERSION
from training_cluster.flags.storage import FSX_STEP_GIB
from training_cluster.problems import Contradiction, did_you_mean

# What text flags take, in words. Every flag with a pattern has a row (test_settings.py).
_IN_WORDS = {
    "accounting": "off, new, or host[:port] of a MySQL database",
    "accounting_secret": "an ARN such as arn:aws:secretsmanager:us-east-1:123456789012:secret:name-AbCdEf",
    "accounting_user": "a letter, then letters, digits and underscores, 32 characters at most",
    "alarm_email": "an e-mail address",
    "bucket_name": "a bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens",
    "capacity": "ondemand, spot, reservation:cr-..., capacity-block:cr-... (8 or 17 hex digits)",
    "cluster_name": "a letter, then letters, digits and hyphens, lower-case, 60 at most; not slurm-...",
    "cpu_queue": "off, on, an instance type such as m6i.32xlarge",
    "efs_id": "an EFS id (fs- and 8 or 17 hex digits)",
    "fsx_id": "an FSx id (fs- and 17 hex digits)",
    "head_node_type": "an x86_64 instance type such as c5.4xlarge",
    "image": "official, build, an AMI id (ami- and 8 or 17 hex digits)",
    "key_name": "the name of an ED25519 key pair",
    "permissions_boundary": "an ARN such as arn:aws:iam::123456789012:policy/boundary",
    "pcluster_version": PCLUSTER_VERSION,
    "placement_group": "auto, off, the name of an existing group",
    "private_subnet_id": "a subnet id (subnet- and 8 or 17 hex digits)",
    "public_subnet_id": "a subnet id (subnet- and 8 or 17 hex digits)",
    "security_group_id": "a security group id (sg- and 8 or 17 hex digits)",
    "ssh_from": "an IPv4 network such as 203.0.113.0/24",
    "tags": "KEY=VALUE,KEY=VALUE",
    "vpc_id": "a VPC id (vpc- and 8 or 17 hex digits)",
    "workloads": f"{NO_WORKLOADS}, or some of {', '.join(load_workloads())}",
    "zone": "auto, a zone name such as us-east-1a, a zone id such as use1-az4",
}
# What to type where there is no default to name, or none that is safe to type.
_EXAMPLES = {
    "accounting_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf",
    "alarm_email": "me@example.com",
    "bucket_name": "my-bucket",
    "budget_usd": "5000",
    "cluster_name": "my-team",  # the default may be a living cluster
    "efs_id": "fs-0123456789abcdef0",
    "efs_mibps": "1024",
    "fsx_id": "fs-0123456789abcdef0",
    "head_node_type": "c5.4xlarge",
    "head_root_gib": "256",
    "image": "official",
    "instance_type": "p4d.24xlarge",
    "key_name": "my-key",
    "permissions_boundary": "arn:aws:iam::123456789012:policy/boundary",
    "private_subnet_id": "subnet-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "security_group_id": "sg-0123456789abcdef0",
    "ssh_from": "203.0.113.0/24",
    "tags": "team=nlp,project=gpt2",
    "vpc_id": "vpc-0123456789abcdef0",
    "workloads": NO_WORKLOADS,
    "os": "ubuntu2204",
}


def literal_choices(annotation: Any) -> list[str]:
    """The words of a Literal, or of a Literal that may be None; none for other types."""
    inner = [annotation, *get_args(annotation)]
    return [word for each in inner for word in get_args(each) if isinstance(word, str)]


def allowed_values(name: str, info: FieldInfo) -> str:
    """Say in a few words what a flag takes."""
    if name == "family":
        return ", ".join(family_names())
    if name == "instance_type":
        return "a size of the family, as docs/families.md lists them"
    if name in _IN_WORDS:
        return _IN_WORDS[name]
    if choices := literal_choices(info.annotation):
        return ", ".join(choices)
    low, high = (next((getattr(m, k) for m in info.metadata if hasattr(m, k)), None) for k in ("ge", "le"))
    if name == "fsx_gib":
        return f"{low}, or a multiple of {FSX_STEP_GIB}"
    return f"a whole number from {low}" + (f" to {high}" if high is not None else "")


def explain(error: ValidationError, fields: Mapping[str, FieldInfo]) -> str:
    """Turn pydantic's findings into one message: flag, value, what is allowed, what to type."""
    lines = [_headline(error.error_count())]
    for problem in error.errors():
        flag = str(problem["loc"][0])
        if problem["type"] == "extra_forbidden":
            lines.append(f"  {flag}: no such flag.{did_you_mean(flag, fields)}")
            lines.append(f"    flags:   {', '.join(fields)} (docs/flags.md)")
            continue
        own_words = problem["msg"].removeprefix("Value error, ")
        said = own_words if problem["type"] == "value_error" else "not allowed"
        default = fields[flag].default
        lines.append(f"  {flag}={problem['input']}: {said}")
        lines.append(f"    allowed: {allowed_values(flag, fields[flag])}")
        lines.append(f"    type:    -c {flag}={_EXAMPLES.get(flag, default)}")
    return "\n".join(lines)


def explain_contradictions(found: Sequence[Contradiction]) -> str:
    """Say which values do not go together, and what to type instead."""
    lines = [_headline(len(found))]
    for contradiction in found:
        lines.append(f"  {contradiction.problem}")
        lines.append(f"    type:    {contradiction.mend}")
    return "\n".join(lines)


def _headline(count: int) -> str:
    return f"{count} problem{'s' if count > 1 else ''} in the context flags, nothing was done:"
