"""Needs at creation: what a service checks or uses when CloudFormation creates a resource.

CloudFormation starts all resources without dependencies at once, so each need has to be a dependency. A
template without it deploys or fails by luck.
"""

import itertools
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from rehearsal.creation_order.template import Dependencies, Resources, of_type, properties, referred

_RULES_OF_GROUPS = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")
_FUNCTION, _LOG_GROUP = "AWS::Lambda::Function", "AWS::Logs::LogGroup"
# Types that use a role when they are created; functions of custom resources do so, too.
_USES_ROLE_AT_CREATION = (
    "AWS::StepFunctions::StateMachine",  # CreateStateMachine checks that it may write its log
    "AWS::ImageBuilder::Image",  # the build begins at once
    "AWS::Lambda::EventSourceMapping",  # "The function execution role does not have permissions"
)
_STARTS_INSTANCES = ("AWS::EC2::Instance", "AWS::ImageBuilder::Image", "Custom::TrainingCluster")

_Needs = Iterator[tuple[str, Set[str]]]


@dataclass(frozen=True, kw_only=True)
class Need:
    """A kind of resource that another needs, without a reference in the template."""

    id: str
    why: str
    find: Callable[[Resources, Dependencies], _Needs]
    """Yields each resource with the resources that it needs."""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A resource that needs another one and does not depend on it."""

    need: Need
    resource: str
    needed: frozenset[str]

    def __str__(self) -> str:
        return (
            f"{self.resource} needs {', '.join(sorted(self.needed))} and has no dependency on it "
            f"({self.need.id}): {self.need.why}"
        )


def missing(resources: Resources) -> list[Missing]:
    """Return each need of a template that is not a dependency."""
    dependencies = Dependencies(resources)
    return [
        Missing(need=need, resource=name, needed=frozenset(lacking))
        for need in NEEDS
        for name, needed in need.find(resources, dependencies)
        if (lacking := needed - dependencies.before(name))
    ]


def _rules_of_lustre(resources: Resources, _: Dependencies) -> _Needs:
    for name, system in of_type(resources, "AWS::FSx::FileSystem").items():
        groups = {*referred(properties(system).get("SecurityGroupIds"))}
        rules = of_type(resources, *_RULES_OF_GROUPS).items()
        yield name, {rule for rule, each in rules if groups & {*referred(properties(each).get("GroupId"))}}


def _associations_in_series(resources: Resources, dependencies: Dependencies) -> _Needs:
    associations = of_type(resources, "AWS::FSx::DataRepositoryAssociation")
    systems = {name: {*referred(properties(each)["FileSystemId"])} for name, each in associations.items()}
    for one, other in itertools.combinations(sorted(associations), 2):
        if systems[one] == systems[other]:
            first, second = (other, one) if other in dependencies.before(one) else (one, other)
            yield second, {first}


def _functions_called(name: str, resources: Resources, dependencies: Dependencies) -> set[str]:
    """Return the functions of the template that a custom resource calls, directly or by CDK's framework."""
    token = {*referred(properties(resources[name]).get("ServiceToken"))} & resources.keys()
    reached = token.union(*(dependencies.before(each) for each in token))
    return {each for each in reached if resources[each]["Type"] == _FUNCTION}


def _custom(resources: Resources) -> list[str]:
    return [name for name, each in resources.items() if "ServiceToken" in properties(each)]


def _logs_before_calls(resources: Resources, dependencies: Dependencies) -> _Needs:
    groups = of_type(resources, _LOG_GROUP)
    for name in _custom(resources):
        for function in _functions_called(name, resources, dependencies):
            of_function = properties(resources[function])
            wanted = {*referred(of_function.get("LoggingConfig"))}
            names = [
                f"/aws/lambda/{of_function.get('FunctionName')}",
                of_function.get("LoggingConfig", {}).get("LogGroup", ""),
            ]
            yield (
                name,
                {
                    group
                    for group, each in groups.items()
                    if group in wanted
                    or function in {*referred(properties(each))}
                    or properties(each).get("LogGroupName", "without a name") in names
                },
            )


def _policies_before_use(resources: Resources, dependencies: Dependencies) -> _Needs:
    policies = {
        name: {*referred(properties(each).get("Roles", properties(each).get("RoleName")))}
        for name, each in of_type(resources, *_POLICIES).items()
    }
    for name in [*_custom(resources), *of_type(resources, *_USES_ROLE_AT_CREATION)]:
        roles = of_type(resources, "AWS::IAM::Role").keys() & dependencies.before(name)
        yield (
            name,
            {
                policy
                for policy, of in policies.items()
                # A policy about the resource itself, such as a grant to invoke it, can only follow it.
                if of & roles and name not in dependencies.before(policy)
            },
        )


def _gateway_is_attached(resources: Resources, _: Dependencies) -> _Needs:
    attachments = of_type(resources, "AWS::EC2::VPCGatewayAttachment")
    gateways = {
        one: {*referred(properties(each).get("InternetGatewayId"))} for one, each in attachments.items()
    }
    for name, each in of_type(resources, "AWS::EC2::Route").items():
        used = {*referred(properties(each).get("GatewayId"))}
        yield name, {one for one, of in gateways.items() if used & of}
    for name, each in of_type(resources, "AWS::EC2::EIP", "AWS::EC2::NatGateway").items():
        # An address needs a gateway only when it belongs to an instance.
        if each["Type"] == "AWS::EC2::NatGateway" or "InstanceId" in properties(each):
            yield name, set(attachments)


def _way_out_before_instances(resources: Resources, _: Dependencies) -> _Needs:
    routes = of_type(resources, "AWS::EC2::Route", "AWS::EC2::SubnetRouteTableAssociation")
    for name in of_type(resources, *_STARTS_INSTANCES):
        yield name, set(routes)


NEEDS = (
    Need(
        id="lustre-rules",
        why="FSx checks at creation that the groups permit Lustre's ports, and refuses the file system "
        "(FSx for Lustre guide, troubleshooting: InvalidNetworkSettings; ParallelCluster's cluster_stack.py "
        "has the dependency)",
        find=_rules_of_lustre,
    ),
    Need(
        id="association-series",
        why="FSx fails one of two data repository associations that are created at the same time "
        "(terraform-provider-aws issue 24678)",
        find=_associations_in_series,
    ),
    Need(
        id="log-before-call",
        why="a function that is called first creates its own log group, then CloudFormation cannot (aws-cdk "
        "issue 667)",
        find=_logs_before_calls,
    ),
    Need(
        id="policy-before-use",
        why="the role is used when the resource is created, and lacks the policy until then (CloudFormation "
        "guide, DependsOn)",
        find=_policies_before_use,
    ),
    Need(
        id="gateway-attached",
        why="EC2 refuses routes and addresses of an internet gateway that is not attached (CloudFormation "
        "guide, DependsOn: when it is required)",
        find=_gateway_is_attached,
    ),
    Need(
        id="way-out",
        why="an instance that starts without a route to AWS never reports (CloudFormation guide, DependsOn)",
        find=_way_out_before_instances,
    ),
)
