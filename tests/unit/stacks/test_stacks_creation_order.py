"""The order in which CloudFormation creates resources: it starts all at once that wait for nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tools.synth_families import OTHERS
from training_cluster.catalog.families import family_names

Synthesise = Callable[..., dict[str, Template]]
Resources = Mapping[str, Mapping[str, Any]]

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
CASES = [{"family": name} for name in family_names()] + list(FEATURES.values())
RULES = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
ids = ["-".join(flags.values())[:40] for flags in CASES]


@pytest.fixture(params=CASES, ids=ids)
def templates(request: pytest.FixtureRequest, synthesise: Synthesise) -> list[Resources]:
    """Return the resources of each stack, for one family or one set of features."""
    return [each.to_json().get("Resources", {}) for each in synthesise(**request.param).values()]


def _referred(value: Any) -> Iterator[str]:
    """Return the logical ids that a value of a template names."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "Ref":
                yield part
            elif key == "Fn::GetAtt":
                yield part[0] if isinstance(part, list) else part.partition(".")[0]
            elif key == "Fn::Sub":
                yield from re.findall(r"\$\{([A-Za-z0-9]+)", part if isinstance(part, str) else part[0])
                yield from _referred(part)
            else:
                yield from _referred(part)
    elif isinstance(value, list):
        for part in value:
            yield from _referred(part)


def _waits_for(name: str, resources: Resources) -> set[str]:
    """Return all resources that CloudFormation creates before a resource."""
    found, left = set[str](), [name]
    while left:
        resource = resources[left.pop()]
        told = resource.get("DependsOn", [])
        depends = [told] if isinstance(told, str) else told
        direct = {*_referred(resource.get("Properties", {})), *depends}
        left += [each for each in direct & resources.keys() if each not in found]
        found |= direct & resources.keys()
    return found


def _named(resources: Resources, *types: str) -> dict[str, Mapping[str, Any]]:
    return {name: each for name, each in resources.items() if each["Type"] in types}


def test_a_file_system_comes_after_every_rule_of_its_groups(templates: list[Resources]) -> None:
    """FSx refuses a file system whose group lets no Lustre through, and does not wait for the rules."""
    for resources in templates:
        for name, system in _named(resources, "AWS::FSx::FileSystem").items():
            groups = {*_referred(system["Properties"]["SecurityGroupIds"])}
            rules = {
                rule
                for rule, each in _named(resources, *RULES).items()
                if groups & {*_referred(each["Properties"]["GroupId"])}
            }
            assert rules <= _waits_for(name, resources)
            assert rules or not groups, "a group without a rule lets nobody in"


def test_data_repository_associations_come_one_after_the_other(templates: list[Resources]) -> None:
    for resources in templates:
        associations = _named(resources, "AWS::FSx::DataRepositoryAssociation")
        for one, other in itertools.combinations(associations, 2):
            assert one in _waits_for(other, resources) or other in _waits_for(one, resources)


def test_the_log_of_every_function_is_created_before_its_first_call(templates: list[Resources]) -> None:
    """Lambda creates the group of a function that is called first, and then CloudFormation cannot.

    CDK's function that closes the default security group has none in the template: Lambda's own stays.
    """
    for resources in templates:
        groups = _named(resources, "AWS::Logs::LogGroup")
        for name, each in resources.items():
            token = each.get("Properties", {}).get("ServiceToken")
            if token is None:
                continue
            called = {*_referred(token)} & resources.keys()
            assert called, f"{name} has no function of its own stack"
            before = _waits_for(name, resources)
            functions = [
                other
                for other in set().union(called, *(_waits_for(one, resources) for one in called))
                if resources[other]["Type"] == "AWS::Lambda::Function"
            ]
            for function in functions:
                logs = resources[function]["Properties"].get("LoggingConfig", {})
                own = {
                    group
                    for group, of in groups.items()
                    if group in {*_referred(logs)} or function in {*_referred(of.get("Properties", {}))}
                }
                assert own <= before, f"{name} calls {function} before {own - before} is there"


def test_the_cases_show_something(synthesise: Synthesise) -> None:
    storage = synthesise()["StorageStack"]
    assert len(storage.find_resources("AWS::FSx::DataRepositoryAssociation")) == 2
    assert len(storage.find_resources(RULES[0])) + len(storage.find_resources(RULES[1])) >= 6
    cluster = synthesise()["TrainingClusterStack"]
    assert cluster.find_resources("Custom::CDKBucketDeployment")
