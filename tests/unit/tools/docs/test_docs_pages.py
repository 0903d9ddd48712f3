"""Pages and tables that programs write are the present ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
from aws_cdk.assertions import Template

from bench.__main__ import NAMES
from bench.measuring import page
from ops.asset_code import asset_code
from tools.docs.__main__ import PAGES
from tools.docs.execution_role_page import render_execution_role_page
from tools.docs.flag_changes import SAMPLES, configs
from tools.docs.reserved_keys import reserved_rows
from tools.docs.tables import TABLES
from tools.synth_families import OTHERS
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.overrides.reserved import reserved_reason, table
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings


@pytest.mark.parametrize("name", [name for name in PAGES if name != "execution-role"])
def test_generated_page_is_up_to_date(name: str) -> None:
    """The other has templates that it shares with other tests."""
    assert (ROOT / "docs" / f"{name}.md").read_text() == PAGES[name](), "make docs"


def test_generated_tables_are_in_their_pages() -> None:
    for file, render in TABLES.values():
        assert render() in file.read_text(), "make docs"


def test_benchmarks_page_shows_the_kept_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    published = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.write(NAMES)
    assert (tmp_path / "page.md").read_text() == published


def test_a_sample_changes_its_flag_and_no_other() -> None:
    for sample in SAMPLES:
        before, after = (read_settings(each) for each in (sample.before, sample.after))
        changed = {n for n in Settings.model_fields if getattr(before, n) != getattr(after, n)}
        alone = changed - {"accounting_secret"} or changed  # it comes with accounting, and alone
        assert alone == {sample.flag}, sample
    for sample in SAMPLES:
        refused = asset_code("cluster_provider", "immutable").immutable.changes(*configs(sample))
        assert bool(refused) is bool(facts_of(Settings.model_fields[sample.flag]).on_change), sample
        assert all(sample.flag in each.flags for each in refused), sample


def test_page_has_the_actions_of_the_stacks(synthesise: Callable[..., dict[str, Template]]) -> None:
    templates = [template for flags in OTHERS.values() for template in synthesise(**flags).values()]
    types = {each["Type"] for template in templates for each in template.to_json()["Resources"].values()}
    page = (ROOT / "docs" / "execution-role.md").read_text(encoding="utf-8")
    assert page == render_execution_role_page(types), "type: make docs"


def test_the_table_is_the_generated_one() -> None:
    rows = reserved_rows()
    assert [row for rows in table().values() for row in rows] == rows, "python -m tools.docs.reserved_keys"
    for row in rows:
        assert row.path.endswith(".Networking.SubnetIds") or reserved_reason(row.rendered, row.path), row
