"""Unlucky orders: true to the dependencies, random, repeatable, and last what nothing waits for."""

import pytest

from rehearsal.creation_order.orders import unlucky_order

WAITS = {
    "file-system": {"group"},
    "group": {"vpc"},
    "rule": {"group"},
    "vpc": set[str](),
    "link": {"file-system"},
}


def test_nothing_comes_before_its_dependencies() -> None:
    for seed in range(50):
        order = unlucky_order(WAITS, seed)
        assert sorted(order) == sorted(WAITS)
        assert all(order.index(needed) < order.index(name) for name in WAITS for needed in WAITS[name])


def test_what_nothing_waits_for_comes_last() -> None:
    for seed in range(50):
        assert unlucky_order(WAITS, seed)[:3] == ["vpc", "group", "file-system"]
    assert {unlucky_order(WAITS, seed)[-1] for seed in range(50)} == {"rule", "link"}


def test_a_seed_gives_one_order_whatever_the_templates() -> None:
    turned = dict(reversed(WAITS.items()))
    assert all(unlucky_order(WAITS, seed) == unlucky_order(turned, seed) for seed in range(20))


def test_circular_dependencies_are_named() -> None:
    with pytest.raises(ValueError, match="Circular dependency between resources: a, b"):
        unlucky_order({"a": {"b"}, "b": {"a"}}, 1)
