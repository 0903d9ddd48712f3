"""The policies of a cluster's own stack, as its real template makes them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.deployed_ids import Existing, deployed_ids, without_unmade
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

Synthesise = Callable[..., dict[str, Template]]
PROMETHEUS = {"metrics": "prometheus"}
ALL = PROMETHEUS | {"alarm_email": "a@example.com", "login_nodes": "1", "read_buckets": "my-data"}


def _deployed_config(template: Template) -> Any:
    """Return the config of the custom resource, with the logical id in place of each reference."""
    (resource,) = template.find_resources("Custom::TrainingCluster").values()
    parts = resource["Properties"]["ClusterConfiguration"]["Fn::Join"][1]
    return json.loads("".join(p if isinstance(p, str) else _logical_id(p) for p in parts))


def _logical_id(reference: Mapping[str, Any]) -> str:
    """Return the resource of a reference; the function's name for another stack's."""
    ((function, of),) = reference.items()
    return str({"Ref": of, "Fn::GetAtt": of[0]}.get(function, function))


def _rights(config: Mapping[str, Any]) -> list[Any]:
    """Return the policies and placement groups of all nodes."""
    queues, pools = config["Scheduling"]["SlurmQueues"], config.get("LoginNodes", {}).get("Pools", [])
    policies = [each["Iam"]["AdditionalIamPolicies"] for each in (config["HeadNode"], *queues, *pools)]
    return [*policies, *(each["Networking"]["PlacementGroup"] for each in queues)]


@pytest.mark.slow
@pytest.mark.parametrize("flags", [PROMETHEUS, ALL], ids=["prometheus", "all"])
def test_rendered_policies_are_the_deployed_ones(flags: dict[str, str], synthesise: Synthesise) -> None:
    template = synthesise(**flags)["TrainingClusterStack"]
    settings, own = read_settings(flags), {name: name for name in template.to_json()["Resources"]}
    existing = Existing(region="", outputs={}, own=own, database=None, image_id=None)
    rendered = render_cluster_config(settings=settings, ids=deployed_ids(settings, existing))
    assert _rights(rendered) == _rights(_deployed_config(template))
    assert without_unmade(rendered)[1] == ()


def test_only_groups_of_the_deploy_are_left_out() -> None:
    """A user's group can have any name, such as group."""
    for name, unmade in (("group", ()), ("auto", ("the placement group of gpu",))):
        config = config_before_deploy(read_settings({"family": "p4d", "placement_group": name}))
        left, found = without_unmade(config)
        assert tuple(each for each in found if "group" in each) == unmade
        queue = left["Scheduling"]["SlurmQueues"][0]
        assert (queue["Networking"]["PlacementGroup"].get("Name") == name) == (not unmade)
