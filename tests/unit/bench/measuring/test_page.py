"""docs/benchmarks.md, from the figures that benchmarks kept."""

from pathlib import Path

import pytest

from bench.__main__ import NAMES
from bench.measuring import page, result
from bench.measuring.result import Result, Row

MACHINE = {
    "date": "2026-11-23",
    "processor": "Xeon",
    "cores": 8,
    "memory_gib": 64,
    "gpu": None,
    "python": "3.11",
    "packages": {"pydantic": "2"},
}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep results and the page in a folder of the test."""
    for name, place in {"RESULTS": "results", "PAGE": "page.md"}.items():
        monkeypatch.setattr(page, name, tmp_path / place)
    return tmp_path


def test_page_shows_the_kept_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    published = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.write(NAMES)
    assert (tmp_path / "page.md").read_text() == published


def test_benchmark_without_figures_is_not_run(folder: Path) -> None:
    rows = [Row(name="a|b", measured="2", goal="<= 3x", verdict="met")]
    page.keep("synth", "The app", Result(rows=rows), machine=MACHINE, seconds=1.4)
    page.write(["synth", "scale"])
    lines = (folder / "page.md").read_text().splitlines()
    assert "| a\\|b | <= 3x |  | 2 | met |" in lines
    assert "Not run yet: `make bench ONLY=scale`." in lines


def test_column_before_has_the_previous_days_figure(folder: Path) -> None:
    for date, measured in (("2026-11-22", "3x (2 to 4)"), ("2026-11-23", "2x"), ("2026-11-23", "1x")):
        machine = {**MACHINE, "date": date}
        rows = [Row(name="a", measured=measured), Row(name=measured, measured="new")]
        page.keep("synth", "The app", Result(rows=rows), machine=machine, seconds=1)
    page.write(["synth"])
    lines = (folder / "page.md").read_text().splitlines()
    assert "| a |  | 3x | 1x |  |" in lines
    assert "| 1x |  |  | new |  |" in lines


@pytest.mark.parametrize(
    ("values", "at_most", "at_least"),
    [([0.5, 0.9, 9.0], "met", "missed"), ([1.0], "met", "met"), ([0.1, 1.1, 1.2], "missed", "met")],
)
def test_median_is_compared_with_the_goal(values: list[float], at_most: str, at_least: str) -> None:
    rows = (result.at_most("a", values, 1.0), result.at_least("a", values, 1.0))
    assert [(row.goal, row.verdict) for row in rows] == [("<= 1x", at_most), (">= 1x", at_least)]
