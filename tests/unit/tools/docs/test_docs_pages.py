"""docs/flags.md and docs/families.md: the generated pages are the present ones."""

from tools.docs import variables_table
from tools.docs.families_page import render_families_page
from tools.docs.flags_page import render_flags_page
from training_cluster.paths import ROOT


def test_the_generated_pages_are_up_to_date() -> None:
    assert (ROOT / "docs" / "flags.md").read_text() == render_flags_page(), "make docs"
    assert (ROOT / "docs" / "families.md").read_text() == render_families_page(), "make docs"


def test_the_table_of_variables_is_in_its_page() -> None:
    assert variables_table.render() in variables_table.PAGE.read_text(), "make docs"
