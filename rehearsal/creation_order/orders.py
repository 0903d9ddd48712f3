"""Orders of creation that CloudFormation may choose; it starts all resources without dependencies at once."""

import random
from collections.abc import Mapping, Set


def unlucky_order(dependencies: Mapping[str, Set[str]], seed: int) -> list[str]:
    """Return a random order of creation in which resources without dependants come last.

    Such resources are where a forgotten dependency hurts: nothing waits for a security group's rule, a log
    group or a policy, so CloudFormation may create it after the resource that needs it.

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
