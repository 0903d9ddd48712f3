"""Each need of a resource at its creation is a dependency: CloudFormation starts all others at once."""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Set

import pytest

from tests.unit.stacks.app import App, Json

# Types that use a role when they are created, as a custom resource's function does.
_USES_ROLE = (
    *("AWS::StepFunctions::StateMachine", "AWS::ImageBuilder::Image"),
    "AWS::Lambda::EventSourceMapping",
)
_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")
_Needs = Iterator[tuple[str, Set[str]]]


class Template:
    """Resources by logical id, and those that CloudFormation creates before each."""

    def __init__(self, resources: Mapping[str, Json]) -> None:
        self.resources = resources
        self._direct = {
            name: self.referred([each.get("Properties"), each.get("DependsOn")]) - {name}
            for name, each in resources.items()
        }

    def referred(self, value: Json) -> set[str]:
        """Return the ids in Ref, Fn::GetAtt, Fn::Sub and DependsOn: no other text has such words."""
        return {*re.findall(r"\w+", json.dumps(value))} & self.resources.keys()

    def property(self, name: str, *keys: str) -> set[str]:
        given = self.resources[name].get("Properties", {})
        return self.referred([given.get(key) for key in keys])

    def of_type(self, *types: str) -> list[str]:
        return [name for name, each in self.resources.items() if each["Type"] in types]

    def before(self, name: str) -> set[str]:
        found, left = set[str](), [name]
        while left:
            new = self._direct[left.pop()] - found
            found |= new
            left += new
        return found


def _rules_of_lustre(template: Template) -> _Needs:
    rules = template.of_type("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
    for name in template.of_type("AWS::FSx::FileSystem"):
        groups = template.property(name, "SecurityGroupIds")
        yield name, {rule for rule in rules if groups & template.property(rule, "GroupId")}


def _associations_in_series(template: Template) -> _Needs:
    associations = template.of_type("AWS::FSx::DataRepositoryAssociation")
    for one, other in itertools.combinations(associations, 2):
        yield (other, {one}) if one in template.before(other) else (one, {other})


def _policies_before_use(template: Template) -> _Needs:
    custom = [name for name, each in template.resources.items() if "ServiceToken" in str(each)]
    for name in [*custom, *template.of_type(*_USES_ROLE)]:
        roles = {*template.of_type("AWS::IAM::Role")} & template.before(name)
        of_roles = (each for each in template.of_type(*_POLICIES) if roles & template.property(each, "Roles"))
        # A policy about the resource itself, such as a grant to invoke it, can only follow it.
        yield name, {each for each in of_roles if name not in template.before(each)}


def _gateway_is_attached(template: Template) -> _Needs:
    attachments = template.of_type("AWS::EC2::VPCGatewayAttachment")
    for name in template.of_type("AWS::EC2::Route"):
        used = template.property(name, "GatewayId")
        yield name, {each for each in attachments if used & template.property(each, "InternetGatewayId")}
    for name in template.of_type("AWS::EC2::NatGateway"):
        yield name, {*attachments}


NEEDS: Mapping[str, Callable[[Template], _Needs]] = {
    # FSx for Lustre guide, troubleshooting: InvalidNetworkSettings
    "FSx checks at creation that the groups permit Lustre's ports": _rules_of_lustre,
    # terraform-provider-aws issue 24678
    "FSx fails one of two associations that are created at the same time": _associations_in_series,
    # CloudFormation guide, DependsOn
    "the role is used when the resource is created, and lacks the policy until then": _policies_before_use,
    # CloudFormation guide, DependsOn: when it is required
    "EC2 refuses routes and addresses of a gateway that is not attached": _gateway_is_attached,
}


def _missing(resources: Mapping[str, Json]) -> list[tuple[str, str, Set[str]]]:
    template = Template(resources)
    return [
        (why, name, lacking)
        for why, find in NEEDS.items()
        for name, needed in find(template)
        if (lacking := needed - template.before(name))
    ]


@pytest.mark.parametrize("name", ["default", "everything", "brought"])
def test_each_need_is_a_dependency(name: str, request: pytest.FixtureRequest) -> None:
    app: App = request.getfixturevalue(name)
    for stack, template in app.templates.items():
        assert (stack, _missing(template["Resources"])) == (stack, [])


def test_needs_without_dependencies_are_named(default: App) -> None:
    found = set()
    for template in default.templates.values():
        without = {
            name: {key: value for key, value in each.items() if key != "DependsOn"}
            for name, each in template["Resources"].items()
        }
        found |= {why for why, *_ in _missing(without)}
    assert found == {*NEEDS}
