"""The policies of a cluster's own stack, as its real template makes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from ops.account.own_resources import with_own_resources, without_unmade
from ops.account.stacks import Resource
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import placeholders
from training_cluster.rules.context import read_settings

Synthesise = Callable[..., dict[str, Template]]
PROMETHEUS = {"metrics": "prometheus"}
ALL = PROMETHEUS | {"alarm_email": "a@example.com", "login_nodes": "1", "read_buckets": "my-data"}


def _resources(template: Mapping[str, Any]) -> Iterator[Resource]:
    for logical_id, each in template["Resources"].items():
        yield Resource(type=each["Type"], physical_id=logical_id, logical_id=logical_id)


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
    settings, ids = read_settings(flags), placeholders(image_id=None, bootstrap_budget_s=0)
    found = with_own_resources(ids, settings, _resources(template.to_json()))
    rendered = render_cluster_config(settings=settings, ids=found)
    assert _rights(rendered) == _rights(_deployed_config(template))
    assert without_unmade(rendered)[1] == ()
