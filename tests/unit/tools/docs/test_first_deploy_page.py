"""docs/first-deploy.md is that of the checks."""

from ops.verify.checks import CHECKS
from ops.verify.nodes import NODE_CHECKS
from tools.docs.first_deploy_page import render_first_deploy_page
from training_cluster.paths import ROOT


def test_the_page_is_that_of_the_checks() -> None:
    page = render_first_deploy_page()
    assert (ROOT / "docs" / "first-deploy.md").read_text() == page, "make docs"
    assert all(f"| {check.id} | " in page for check in (*CHECKS, *NODE_CHECKS))
