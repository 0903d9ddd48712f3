"""Pages that programs write are the present ones."""

from pathlib import Path

import pytest

from bench.__main__ import NAMES
from bench.measuring import page
from tools.docs.__main__ import PAGES
from tools.docs.tables import TABLES
from training_cluster.paths import ROOT


@pytest.mark.parametrize("name", [name for name in PAGES if name != "execution-role"])
def test_generated_page_is_up_to_date(name: str) -> None:
    """test_execution_role_page.py compares the other, by templates that it shares with other tests."""
    assert (ROOT / "docs" / f"{name}.md").read_text() == PAGES[name](), "make docs"


def test_generated_tables_are_in_their_pages() -> None:
    for file, render in TABLES.values():
        assert render() in file.read_text(), "make docs"


def test_benchmarks_page_shows_the_kept_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    published = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.write(NAMES)
    assert (tmp_path / "page.md").read_text() == published
