"""Pages that programs write are the present ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.__main__ import NAMES
from bench.measuring import page
from tools.docs.families_page import render_families_page
from tools.docs.first_deploy_page import render_first_deploy_page
from tools.docs.flags_page import render_flags_page
from tools.docs.tables import TABLES
from training_cluster.paths import ROOT


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("flags", render_flags_page),
        ("families", render_families_page),
        ("first-deploy", render_first_deploy_page),
    ],
)
def test_generated_page_is_up_to_date(name: str, render: Callable[[], str]) -> None:
    assert (ROOT / "docs" / f"{name}.md").read_text() == render(), "make docs"


def test_generated_tables_are_in_their_pages() -> None:
    for file, render in TABLES.values():
        assert render() in file.read_text(), "make docs"


def test_benchmarks_page_shows_the_kept_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    published = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.write(NAMES)
    assert (tmp_path / "page.md").read_text() == published
