"""The docs site's navigation, and the links of its pages to pages and to source files."""

import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from training_cluster.paths import ROOT

DOCS = ROOT / "docs"
OUTSIDE = ("CONTRIBUTING.md", "README.md", "assets/bootstrap/README.md", "assets/bootstrap/health/README.md")
PAGES = sorted(
    [*DOCS.rglob("*.md"), *(ROOT / name for name in OUTSIDE), *ROOT.glob("assets/training/*/README.md")]
)
_LINK = re.compile(r"\]\((?![a-z]+:)([^)\s]*)\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = (line.lstrip("# ") for line in text.splitlines() if re.match(r"#{1,6} ", line))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """List the links of a page whose file or heading does not exist."""
    broken = []
    for target in _LINK.findall(page.read_text()):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    assert {page: links for page in PAGES if (links := broken_links(page))} == {}


def test_a_link_without_its_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n[here](#a-page) [there](#b-page) [file](none.md)\n")
    assert broken_links(page) == ["#b-page", "none.md"]


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1]
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent.name != "adr"}
    missing = {page for page in pages if not re.search(rf"[ :]{re.escape(page)}$", navigation, re.MULTILINE)}
    assert missing == set(), "add them to nav of mkdocs.yml"


def test_a_new_workload_is_in_the_navigation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # MkDocs is installed in .venv-docs alone.
    monkeypatch.setitem(sys.modules, "mkdocs.structure.files", SimpleNamespace(File=None))
    hooks = importlib.import_module("tools.docs.site_hooks")
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1])
    for name in ("gpt2", "my-model"):
        (tmp_path / "assets" / "training" / name).mkdir(parents=True)
        (tmp_path / "assets" / "training" / name / "README.md").touch()
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    (before,) = [[*section["Workloads"]] for section in nav if "Workloads" in section]
    (after,) = [
        section["Workloads"] for section in hooks.on_config({"nav": nav})["nav"] if "Workloads" in section
    ]
    assert after == [*before, {"my-model": "workloads/my-model.md"}]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 120
