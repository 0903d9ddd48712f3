"""StorageStack is the same, byte by byte, whatever the flags of the cluster: none of them touches data."""

import json
import tempfile
from pathlib import Path

import aws_cdk as cdk
import pytest

from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from training_cluster.catalog.families import family_names
from training_cluster.flags.account import AccountFlags
from training_cluster.flags.cluster import ClusterFlags
from training_cluster.flags.compute import ComputeFlags
from training_cluster.flags.messages import literal_choices
from training_cluster.flags.tuning import TuningFlags
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings

# Of every flag that is neither storage's nor the network's; tags and a boundary are on everything.
SAMPLES = {
    "family": [{"family": name} for name in family_names()],
    "instance_type": [{"family": "p5", "instance_type": "p5.4xlarge"}],
    "nodes": [{"nodes": "7"}],
    "min_nodes": [{"min_nodes": "1"}],
    "capacity": [
        {"capacity": "spot"},
        {"capacity": "reservation:cr-0123456789abcdef0"},
        {"family": "p5", "capacity": "capacity-block:cr-0123456789abcdef0"},
    ],
    "public_access": [{"public_access": "off"}],
    "queue_name": [{"queue_name": "train"}],
    "queues": [{"queues": "rehearsal/validation/queues/several.yaml"}],
    "placement_group": [{"placement_group": "off"}, {"placement_group": "mine"}],
    "image": [{"image": "build"}, {"image": "ami-0123456789abcdef0"}],
    "image_rebuild": [{"image": "build", "image_rebuild": "monthly"}],
    "workloads": [{"workloads": "gpt2"}, {"image": "build", "workloads": "none"}],
    "head_node_type": [{"head_node_type": "c5.9xlarge"}],
    "head_root_gib": [{"head_root_gib": "500"}],
    "cpu_queue": [{"cpu_queue": "on"}],
    "login_nodes": [{"login_nodes": "2"}],
    "accounting": [{"accounting": "new"}],
    "accounting_user": [],
    "accounting_secret": [
        {
            "accounting": "db.example.com",
            "accounting_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf",
            "accounting_user": "me",
        }
    ],
    "overrides": [{"overrides": "rehearsal/validation/overrides/tuning.yaml"}],
    "users": [{"users": "tests/unit/stacks/people/users.yaml"}],
    "directory": [{"directory": "tests/unit/stacks/people/directory.yaml"}],
    "compute_root_gib": [{"compute_root_gib": "400"}],
    "head_image": [{"head_image": "ami-0123456789abcdef0"}],
    "idle_minutes": [{"idle_minutes": "30"}],
    "security_groups": [{"security_groups": "sg-0123456789abcdef0"}],
    "cluster_name": [{"cluster_name": "second"}],
    "pcluster_version": [],
    "layer": [],  # a built one must lie there
    "key_name": [{"key_name": "mine"}],
    "budget_usd": [{"budget_usd": "100", "alarm_email": "me@example.com"}],
    "alarm_email": [{"alarm_email": "me@example.com"}],
    "node_policies": [{"node_policies": "arn:aws:iam::123456789012:policy/team"}],
    "read_buckets": [{"read_buckets": "data"}],
    "write_buckets": [{"write_buckets": "results/runs"}],
    "tags": [],
    "permissions_boundary": [],
}


@pytest.mark.slow
def test_no_flag_but_its_own_and_the_networks_changes_storage_by_a_byte() -> None:
    expected = _bytes({})
    groups = (ComputeFlags, ClusterFlags, TuningFlags, AccountFlags)
    for flag, info in (each for group in groups for each in group.model_fields.items()):
        options = [{flag: each} for each in literal_choices(info.annotation)]
        assert options or flag in SAMPLES, f"{flag}: add values of it to SAMPLES"
        for flags in SAMPLES.get(flag, options):
            assert _bytes(flags) == expected, flags


def _bytes(flags: dict[str, str]) -> bytes:
    settings = read_settings(flags)
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"], outdir=folder)
        network = NetworkStack(app, "NetworkStack", settings=settings).network
        StorageStack(app, "StorageStack", settings=settings, network=network)
        app.synth()
        return Path(folder, "StorageStack.template.json").read_bytes()
