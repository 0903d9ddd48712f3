"""`python -m tools.docs`: write reserved.tsv, the generated pages, and the tables between marks of others."""

from collections.abc import Callable

from tools.docs import reserved_keys, tables
from tools.docs.changes_page import render_changes_page
from tools.docs.execution_role_page import render_execution_role_page, types_of_stacks
from tools.docs.families_page import render_families_page
from tools.docs.first_deploy_page import render_first_deploy_page
from tools.docs.flags_page import render_flags_page
from training_cluster.paths import ROOT

PAGES: dict[str, Callable[[], str]] = {
    "flags": render_flags_page,
    "families": render_families_page,
    "changes": render_changes_page,
    "first-deploy": render_first_deploy_page,
    "execution-role": lambda: render_execution_role_page(types_of_stacks()),
}
"""Renderer of each page, by the name of its file in docs/."""


if __name__ == "__main__":
    reserved_keys.main()
    for name, render in PAGES.items():
        (ROOT / "docs" / f"{name}.md").write_text(render())
    tables.main()
