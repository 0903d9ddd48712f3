"""Load balancers of login nodes: ministack's records, with AWS's ARNs, and listed in the Tagging API."""

from collections.abc import Iterator
from typing import Any

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.moto_types import Created, Properties, ec2

_TYPE = "AWS::ElasticLoadBalancingV2::LoadBalancer"


def install() -> None:
    """Correct ministack's load balancers."""
    theirs = original(_TYPE)

    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        if subnets := properties.get("Subnets"):
            properties = {**properties, "VpcId": ec2().get_subnet(subnets[0]).vpc_id}
        arn, attributes = theirs["create"](logical_id, properties, stack)
        return _correct(arn, attributes, properties)

    wrap(_TYPE, create=create)
    hooks.find("TAG_COLLECTORS")["elasticloadbalancing"] = _tagged


def _correct(arn: str, attributes: dict[str, Any], properties: Properties) -> Created:
    if properties.get("Type") != "network":
        return arn, attributes
    balancers = hooks.find("LOAD_BALANCERS")
    real = arn.replace("loadbalancer/app/", "loadbalancer/net/")
    for store in (
        balancers,
        hooks.find("LOAD_BALANCER_TAGS"),
        hooks.find("LOAD_BALANCER_ATTRIBUTES"),
    ):
        store[real] = store.pop(arn)
    balancers[real]["LoadBalancerArn"] = real
    name = attributes["LoadBalancerFullName"].replace("app/", "net/", 1)
    return real, attributes | {"Arn": real, "LoadBalancerArn": real, "LoadBalancerFullName": name}


def _tagged() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield every load balancer, target group and listener with its tags, for GetResources."""
    for arn, tags in hooks.find("LOAD_BALANCER_TAGS").items():
        yield arn, [{"Key": tag["Key"], "Value": tag["Value"]} for tag in tags]
