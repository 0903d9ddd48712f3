"""docs/execution-role.md."""

from collections.abc import Callable

from aws_cdk.assertions import Template

from tools.docs.execution_role_page import render_execution_role_page
from tools.synth_families import OTHERS
from training_cluster.paths import ROOT


def test_page_has_the_actions_of_the_stacks(synthesise: Callable[..., dict[str, Template]]) -> None:
    templates = [template for flags in OTHERS.values() for template in synthesise(**flags).values()]
    types = {each["Type"] for template in templates for each in template.to_json()["Resources"].values()}
    page = (ROOT / "docs" / "execution-role.md").read_text(encoding="utf-8")
    assert page == render_execution_role_page(types), "type: make docs"
