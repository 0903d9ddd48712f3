"""The order in which CloudFormation creates our resources: each need at creation is a dependency."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from rehearsal.creation_order.needs import NEEDS, missing
from rehearsal.creation_order.orders import unlucky_order
from rehearsal.creation_order.template import Dependencies, of_type
from tools.synth_families import OTHERS
from training_cluster.catalog.families import family_names

Synthesise = Callable[..., dict[str, Template]]
Resources = dict[str, dict[str, Any]]

SEEDS = range(200)
EFA = {"fsx_efa": "on", "fsx_gib": "38400"}
FEATURES: dict[str, dict[str, str]] = {
    **OTHERS,
    "bought": {"capacity": "spot", "budget_usd": "1000", "alarm_email": "somebody@example.com"},
    "home": {"home": "efs", "efs_mibps": "100", "login_nodes": "2"},
    "given-efs": {"efs_id": "fs-0123456789abcdef1"},
    "given-bucket": {"bucket_name": "training-data"},
    "scratch": {"fsx_type": "scratch2"},
    "efa": EFA,
    "private": {"endpoints": "private", "accounting": "new"},
    "image": {"image": "build"},
}
FAST = {"defaults": {}, "everything": OTHERS["everything"]}
CASES = {
    **FAST,
    **{name: {"family": name} for name in family_names()},
    **{name: flags for name, flags in FEATURES.items() if name not in FAST},
}
PARAMETERS = [
    pytest.param(flags, id=name, marks=() if name in FAST else pytest.mark.slow)
    for name, flags in CASES.items()
]
RULES = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")


def _templates(synthesise: Synthesise, flags: Mapping[str, str]) -> dict[str, Resources]:
    found = {name: each.to_json().get("Resources", {}) for name, each in synthesise(**flags).items()}
    return {name: each for name, each in found.items() if each}


@pytest.mark.parametrize("flags", PARAMETERS)
def test_each_need_at_creation_is_a_dependency_and_met_in_200_unlucky_orders(
    synthesise: Synthesise, flags: dict[str, str]
) -> None:
    for name, resources in _templates(synthesise, flags).items():
        assert [f"{name}: {each}" for each in missing(resources)] == []
        dependencies = Dependencies(resources)
        needs = [found for need in NEEDS for found in need.find(resources, dependencies)]
        orders = set()
        for seed in SEEDS:
            order = unlucky_order(dependencies.direct, seed)
            place = {each: number for number, each in enumerate(order)}
            early = [
                (each, other) for each, needed in needs for other in needed if place[other] > place[each]
            ]
            assert early == [], f"seed {seed}"
            orders.add(tuple(order))
        assert len(orders) > 1


def test_each_kind_of_need_is_one_of_some_template_of_ours(synthesise: Synthesise) -> None:
    found = set()
    for flags in ({}, OTHERS["everything"]):
        for resources in _templates(synthesise, flags).values():
            dependencies = Dependencies(resources)
            found |= {
                need.id for need in NEEDS if any(each for _, each in need.find(resources, dependencies))
            }
    assert found == {need.id for need in NEEDS} - {"way-out"}, "no stack of ours has routes and instances"


def _without(resources: Resources, name: str, *others: str) -> Resources:
    """Return the template with one resource's DependsOn cut: those of `others`, by their types."""
    changed = copy.deepcopy(resources)
    wanted = set(of_type(resources, *others))
    changed[name]["DependsOn"] = [each for each in changed[name]["DependsOn"] if each not in wanted]
    return changed


def _only(resources: Resources, type_: str) -> str:
    (name,) = of_type(resources, type_)
    return name


def test_lustre_beside_the_rules_of_its_group_is_named(synthesise: Synthesise) -> None:
    storage = _templates(synthesise, {})["StorageStack"]
    lustre = _only(storage, "AWS::FSx::FileSystem")
    broken = _without(storage, lustre, *RULES)
    (found,) = missing(broken)
    assert (found.need.id, found.resource) == ("lustre-rules", lustre)
    assert len(found.needed) >= 6, "988 and 1018-1023, in and out, between groups and of its own"
    assert found.needed < of_type(storage, *RULES).keys()
    assert "InvalidNetworkSettings" in str(found)
    order = unlucky_order(Dependencies(broken).direct, 1)
    assert order.index(lustre) < min(order.index(rule) for rule in found.needed), "seed 1 is unlucky"


def test_two_associations_at_the_same_time_are_named(synthesise: Synthesise) -> None:
    storage = _templates(synthesise, {})["StorageStack"]
    type_ = "AWS::FSx::DataRepositoryAssociation"
    second = next(
        name
        for name in of_type(storage, type_)
        if Dependencies(storage).direct[name] & of_type(storage, type_).keys()
    )
    (found,) = missing(_without(storage, second, type_))
    assert found.need.id == "association-series"
    assert {found.resource, *found.needed} == of_type(storage, type_).keys()


def test_a_copy_function_that_is_called_beside_its_log_group_is_named(synthesise: Synthesise) -> None:
    """As CDK's BucketDeployment is without log_group, which refers to the function by its name."""
    cluster = copy.deepcopy(_templates(synthesise, {})["TrainingClusterStack"])
    function = next(
        name
        for name, each in of_type(cluster, "AWS::Lambda::Function").items()
        if "CustomCDKBucketDeployment" in name and "LoggingConfig" in each["Properties"]
    )
    logs = cluster[function]["Properties"].pop("LoggingConfig")["LogGroup"]["Ref"]
    cluster[logs]["Properties"]["LogGroupName"] = {"Fn::Join": ["", ["/aws/lambda/", {"Ref": function}]]}
    found = [each for each in missing(cluster) if each.need.id == "log-before-call"]
    assert {each.needed for each in found} == {frozenset({logs})}
    assert {cluster[each.resource]["Type"] for each in found} == {"Custom::CDKBucketDeployment"}


def test_a_function_that_is_called_before_its_role_may_do_its_work_is_named(synthesise: Synthesise) -> None:
    cluster = copy.deepcopy(_templates(synthesise, {})["TrainingClusterStack"])
    policies = of_type(cluster, "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy").keys()
    for resource in cluster.values():
        resource["DependsOn"] = [each for each in resource.get("DependsOn", []) if each not in policies]
    found = {each.resource for each in missing(cluster) if each.need.id == "policy-before-use"}
    assert _only(cluster, "Custom::TrainingCluster") in found


def test_a_route_beside_the_attachment_of_its_gateway_is_named(synthesise: Synthesise) -> None:
    network = _templates(synthesise, {})["NetworkStack"]
    route = next(
        name
        for name, each in of_type(network, "AWS::EC2::Route").items()
        if "GatewayId" in each["Properties"]
    )
    found = missing(_without(network, route, "AWS::EC2::VPCGatewayAttachment"))
    assert ("gateway-attached", route) in {(each.need.id, each.resource) for each in found}
