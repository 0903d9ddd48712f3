"""Acknowledged findings of cdk-nag and of CDK's own validation, with the reason beside the construct.

CDK keeps them in the constructs' metadata, so the app needs no cdk-nag. `make check` runs its rules, and
fails for a finding that nobody acknowledged, and for an acknowledgement of nothing.
"""

import json
import re
from collections.abc import Iterable

import jsii
from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import custom_resources as cr
from constructs import IConstruct, IValidation

PACK = "AwsSolutions"
CDK = "CloudFormation-Validate"

LOGS_POLICY = (
    f"{PACK}-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]"
)


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge one finding of a construct, and of everything inside it.

    Args:
        rule: rule of cdk-nag, such as AwsSolutions-S1 or AwsSolutions-IAM5[Action::s3:List*], or of CDK's
            own validation, such as W2508.
    """
    whose = PACK if rule.startswith(f"{PACK}-") else CDK
    Validations.of(construct).acknowledge(Acknowledgment(id=f"{whose}::{rule}", reason=reason))


def acknowledge_wildcards(construct: IConstruct, resources: Iterable[str], reason: str) -> None:
    """Acknowledge the resources with a wildcard that policies in a construct name (AwsSolutions-IAM5).

    Args:
        resources: the statements' resources, tokens included; any other wildcard is a finding.
    """
    construct.node.add_validation(_Wildcards(construct, [each for each in resources if "*" in each], reason))


def acknowledge_runtime(function: lambda_.Function) -> None:
    """Acknowledge a Python runtime that is not the newest."""
    reason = "one Python for all functions: the one that AWS makes ParallelCluster's layer for"
    acknowledge(function, f"{PACK}-L1", reason)


def acknowledge_provider(provider: cr.Provider) -> None:
    """Acknowledge the parts of CDK's framework between CloudFormation and a provider's functions."""
    acknowledge(provider, LOGS_POLICY, "CDK's own functions; AWS's own policy of the right to log")
    children = {each.node.id: each for each in provider.node.children}
    waited_for = [children.get(f"framework-{name}") for name in ("isComplete", "onTimeout")]
    called = [provider.on_event_handler, provider.is_complete_handler, *waited_for]
    functions = [each.function_arn for each in called if isinstance(each, lambda_.Function)]
    reason = (
        "CDK's framework may call each of a provider's functions, in every version of it, and nothing else"
    )
    acknowledge_wildcards(provider, [f"{arn}:*" for arn in functions], reason)
    if waiter := children.get("waiter-state-machine"):
        reason = "CDK's loop around is_complete, whose own log has each call and what came of it"
        for rule in ("SF1", "SF2"):
            acknowledge(waiter, f"{PACK}-{rule}", reason)


@jsii.implements(IValidation)
class _Wildcards:
    """Late acknowledgement: findings show names of exports, which exist only with the templates."""

    def __init__(self, construct: IConstruct, resources: list[str], reason: str) -> None:
        self._construct, self._resources, self._reason = construct, resources, reason

    def validate(self) -> list[str]:
        """Acknowledge the resources when CDK validates the app; find no problem."""
        for resource in Stack.of(self._construct).resolve(self._resources):
            name = re.sub(r"\$\{(.+?)\}", r"<\1>", flat(resource))  # as cdk-nag writes a policy's variable
            acknowledge(self._construct, f"{PACK}-IAM5[Resource::{name}]", self._reason)
        return []


def flat(value: object) -> str:
    """Write a reference as cdk-nag does in the name of a finding (its flatten-cfn-reference)."""
    match value:
        case str():
            text = value
        case {"Fn::Join": [str(separator), list(parts)]}:
            text = separator.join(flat(each) for each in parts)
        case {"Fn::Sub": str(template)}:
            text = template.replace("${", "<").replace("}", ">")
        case {"Fn::GetAtt": [resource, attribute]}:
            text = f"<{flat(resource)}.{flat(attribute)}>"
        case {"Fn::ImportValue": name}:
            text = flat(name)
        case {"Ref": name}:
            text = f"<{flat(name)}>"
        case _:
            text = json.dumps(value, separators=(",", ":"))
    return text
