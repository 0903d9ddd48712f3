"""Unlucky orders: what nothing waits for comes last. A slow test of local_aws deploys a stack in one."""

import pytest

from rehearsal.creation_order.orders import unlucky_order

WAITS = {
    "file-system": {"group"},
    "group": {"vpc"},
    "rule": {"group"},
    "vpc": set[str](),
    "link": {"file-system"},
}


def test_what_nothing_waits_for_comes_last() -> None:
    orders = [unlucky_order(WAITS, seed) for seed in range(20)]
    assert {(*order[:3],) for order in orders} == {("vpc", "group", "file-system")}
    assert {order[-1] for order in orders} == {"rule", "link"}
    assert orders == [unlucky_order(dict(reversed(WAITS.items())), seed) for seed in range(20)]


def test_circular_dependencies_are_named() -> None:
    with pytest.raises(ValueError, match="Circular dependency between resources: a, b"):
        unlucky_order({"a": {"b"}, "b": {"a"}}, 1)
