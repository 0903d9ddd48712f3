"""`trainctl plan` and `trainctl price` ask an account that answers, the real library and the real CDK."""

import json
from typing import Any

import pytest

from tests.slow.conftest import Cloud

pytestmark = pytest.mark.slow
FLAGS = ("metrics=prometheus", "alarm_email=me@example.com")
"""Flags with which the cluster has a policy that others lack."""


def _plan(cloud: Cloud, *arguments: str) -> tuple[int, dict[str, Any]]:
    flags = [word for flag in FLAGS for word in ("-c", flag)]
    done = cloud.trainctl("plan", "--json", "--offline-prices", *flags, *arguments)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["plan"]
    return done.returncode, found


def test_before_the_first_deploy_all_is_new(cloud: Cloud) -> None:
    code, found = _plan(cloud, "--no-diff")
    assert (code, found["state"], found["changes"]) == (0, "new", [])


def test_what_was_deployed_just_now_changes_nothing(cloud: Cloud) -> None:
    cloud.deploy(*FLAGS)
    code, found = _plan(cloud)
    assert (code, found["state"], found["changes"]) == (0, "update", [])
    assert found["resources"] == []
    assert found["cost_before"] == found["cost_after"]


def test_more_nodes_are_a_live_change(cloud: Cloud) -> None:
    code, found = _plan(cloud, "-c", "nodes=4", "-c", "cpu_queue=on", "-c", "ssh_from=203.0.113.0/24")
    assert code == 0, found
    told = {each["what"]: (each["old"], each["new"], each["verdict"]) for each in found["changes"]}
    assert told["nodes"] == ("2", "4", "live")
    assert told["cpu_queue"] == ("off", "on", "live")
    resources = {(each["stack"], each["kind"], each["type"]) for each in found["resources"]}
    assert ("TrainingClusterStack", "changed", "Custom::TrainingCluster") in resources
    assert ("NetworkStack", "added", "AWS::EC2::SecurityGroupIngress") in resources
    assert not found["not_judged"], "the validators were asked"


def test_what_cannot_be_is_said_before_any_deploy(cloud: Cloud) -> None:
    code, found = _plan(cloud, "--no-diff", "-c", "fsx_type=scratch2", "-c", "head_node_type=m6i.8xlarge")
    assert code == 1
    verdicts = {each["what"]: each["verdict"] for each in found["changes"]}
    assert verdicts == {"fsx_type": "impossible", "head_node_type": "impossible"}


def test_price_works_without_the_price_list(cloud: Cloud) -> None:
    done = cloud.trainctl("price", "--json", "-c", "capacity=spot")
    assert done.returncode == 0, done.stderr
    quote = json.loads(done.stdout)["quote"]
    assert quote["why_catalog"]
    assert quote["idle_usd_per_hour"] > 0
