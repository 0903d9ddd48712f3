"""The order in which CloudFormation creates our resources: each need at creation is a dependency."""

import pytest

from rehearsal.creation_order.needs import NEEDS, missing
from tests.unit.stacks.app import App, Json


@pytest.mark.parametrize("name", ["default", "everything", "brought"])
def test_each_need_at_creation_is_a_dependency(name: str, request: pytest.FixtureRequest) -> None:
    app: App = request.getfixturevalue(name)
    for stack, template in app.templates.items():
        assert [f"{stack}: {each}" for each in missing(template["Resources"])] == []


def test_needs_without_their_dependencies_are_named(default: App) -> None:
    found = set()
    for template in default.templates.values():
        resources: dict[str, Json] = {
            id_: {key: value for key, value in each.items() if key != "DependsOn"}
            for id_, each in template["Resources"].items()
        }
        found |= {each.need.id for each in missing(resources)}
    # No stack of ours has routes and instances; its functions refer to their logs.
    assert found == {need.id for need in NEEDS} - {"way-out", "log-before-call"}
