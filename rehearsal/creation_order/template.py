"""Resources of a CloudFormation template, their dependencies, and orders of creation that these allow."""

import random
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

Resources = Mapping[str, Mapping[str, Any]]
"""The resources of one template, by logical id."""

_IN_SUB = re.compile(r"\$\{([A-Za-z0-9]+)")


def referred(value: Any) -> Iterator[str]:
    """Yield the logical ids that a value of a template refers to, by Ref, Fn::GetAtt or Fn::Sub."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key == "Ref":
                yield part
            elif key == "Fn::GetAtt":
                yield part[0] if isinstance(part, list) else part.partition(".")[0]
            elif key == "Fn::Sub":
                yield from _IN_SUB.findall(part if isinstance(part, str) else part[0])
                yield from referred(part)
            else:
                yield from referred(part)
    elif isinstance(value, list):
        for part in value:
            yield from referred(part)


class Dependencies:
    """Dependencies between the resources of one template: DependsOn and references.

    Args:
        resources: resources of the template, by logical id.
    """

    def __init__(self, resources: Resources) -> None:
        self.direct: dict[str, Set[str]] = {
            name: {*referred(each.get("Properties", {})), *_depends_on(each)} & resources.keys() - {name}
            for name, each in resources.items()
        }
        self._before: dict[str, Set[str]] = {}

    def before(self, name: str) -> Set[str]:
        """Return all resources that CloudFormation creates before a resource."""
        if name not in self._before:
            found, left = set[str](), [name]
            while left:
                new = self.direct[left.pop()] - found
                found |= new
                left += new
            self._before[name] = found
        return self._before[name]


def _depends_on(resource: Mapping[str, Any]) -> Set[str]:
    named = resource.get("DependsOn", [])
    return {named} if isinstance(named, str) else set(named)


def of_type(resources: Resources, *types: str) -> dict[str, Mapping[str, Any]]:
    """Return the resources of some types, by logical id."""
    return {name: each for name, each in resources.items() if each.get("Type") in types}


def properties(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a resource's properties; none is an empty mapping."""
    found: Mapping[str, Any] = resource.get("Properties") or {}
    return found


def unlucky_order(dependencies: Mapping[str, Set[str]], seed: int) -> list[str]:
    """Return a random order of creation in which resources without dependants come last.

    CloudFormation starts all resources without dependencies at once. Those without dependants are where a
    forgotten dependency hurts: nothing waits for a security group's rule, a log group or a policy, so
    CloudFormation may create it after the resource that needs it.

    Args:
        dependencies: resources of one template, each with those that are created before it.
        seed: determines the order, whatever the order of resources in the template.

    Raises:
        ValueError: the dependencies are circular.
    """
    chance = random.Random(seed)  # noqa: S311  # no secret
    depended_on = set().union(*dependencies.values())
    left, order = {name: set(needed) for name, needed in dependencies.items()}, list[str]()
    while left:
        ready = sorted(name for name, needed in left.items() if not needed)
        if not ready:
            raise ValueError(f"Circular dependency between resources: {', '.join(sorted(left))}")
        name = chance.choice([each for each in ready if each in depended_on] or ready)
        order.append(name)
        del left[name]
        for needed in left.values():
            needed.discard(name)
    return order
