"""No flag of a cluster changes network or storage, by which deploys of one cluster could hurt the others."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from tests.unit.stacks.app import AMI, SECRET
from training_cluster.catalog.families import family_names
from training_cluster.flags.account import AccountFlags
from training_cluster.flags.cluster import ClusterFlags
from training_cluster.flags.compute import ComputeFlags
from training_cluster.flags.messages import literal_choices
from training_cluster.flags.tuning import TuningFlags
from training_cluster.network.zone import RESOURCE_TYPE
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import GUARD_TYPE

# Of each flag without a list of values; tags and a boundary are on everything.
SAMPLES: dict[str, list[dict[str, str]]] = {
    "family": [{"family": name} for name in family_names()],
    "instance_type": [{"family": "p5", "instance_type": "p5.4xlarge"}],
    "capacity": [{"capacity": "spot"}, {"family": "p5", "capacity": "capacity-block:cr-0123456789abcdef0"}],
    "image": [{"image": "build"}, {"image": AMI}],
    "image_rebuild": [{"image": "build", "image_rebuild": "monthly"}],
    "workloads": [{"workloads": "gpt2"}, {"image": "build", "workloads": "none"}],
    "accounting_user": [],
    "accounting_secret": [{"accounting": "db.example.com", "accounting_secret": SECRET}],
    "pcluster_version": [],
    "layer": [],  # a built one must lie there
    "budget_usd": [{"budget_usd": "100", "alarm_email": "me@example.com"}],
    "tags": [],
    "flags": [],
    "permissions_boundary": [],
    **{
        flag: [{flag: value}]
        for flag, value in {
            **{"nodes": "7", "min_nodes": "1", "placement_group": "mine", "head_node_type": "c5.9xlarge"},
            **{"queues": "rehearsal/validation/queues/several.yaml", "queue_name": "train"},
            **{"head_root_gib": "500", "cpu_queue": "on", "login_nodes": "2", "accounting": "new"},
            **{"overrides": "rehearsal/validation/overrides/tuning.yaml", "compute_root_gib": "400"},
            **{"users": "tests/unit/stacks/people/users.yaml", "cluster_name": "second"},
            **{"directory": "tests/unit/stacks/people/directory.yaml", "head_image": AMI},
            **{"idle_minutes": "30", "security_groups": "sg-0123456789abcdef0", "key_name": "mine"},
            **{"alarm_email": "me@example.com", "node_policies": "arn:aws:iam::123456789012:policy/team"},
            **{"read_buckets": "data", "write_buckets": "results/runs"},
        }.items()
    },
}


_OF_THE_CLUSTER = {RESOURCE_TYPE: ("InstanceTypes", "Reservations"), GUARD_TYPE: ("Cluster", "LeftOut")}


@pytest.mark.slow
def test_network_and_storage_are_those_of_every_cluster() -> None:
    expected = _foundations({})
    groups = (ComputeFlags, ClusterFlags, TuningFlags, AccountFlags)
    for flag, info in (each for group in groups for each in group.model_fields.items()):
        options = [{flag: each} for each in literal_choices(info.annotation)]
        assert options or flag in SAMPLES, f"{flag}: add values of it to SAMPLES"
        for flags in SAMPLES.get(flag, options):
            assert _foundations(flags) == expected, flags


def _foundations(flags: dict[str, str]) -> list[Any]:
    """Return the templates of network and storage, without what zone and guard ask for the cluster."""
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"])
    settings = read_settings(flags)
    network = NetworkStack(app, "NetworkStack", settings=settings)
    storage = StorageStack(app, "StorageStack", settings=settings, network=network.network)
    templates = [Template.from_stack(stack).to_json() for stack in (network, storage)]
    for resource in templates[0]["Resources"].values():
        for name in _OF_THE_CLUSTER.get(resource["Type"], ()):
            del resource["Properties"][name]
    return templates
