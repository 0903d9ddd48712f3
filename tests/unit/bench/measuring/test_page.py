"""docs/benchmarks.md, from the figures that benchmarks kept."""

from pathlib import Path

import pytest

from bench.measuring import page
from bench.measuring.result import Bars, Lines, Result, Row, bar

MACHINE = {
    "date": "2026-11-23",
    "processor": "Xeon",
    "cores": 8,
    "memory_gib": 64,
    "gpu": None,
    "python": "3.11",
    "packages": {"pydantic": "2"},
}


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep results and the page in a folder of the test."""
    for name, place in {"RESULTS": "results", "PICTURES": "pictures", "PAGE": "page.md"}.items():
        monkeypatch.setattr(page, name, tmp_path / place)
    return tmp_path


def test_a_kept_benchmark_is_shown_with_its_rows_and_machine_and_another_as_not_run(folders: Path) -> None:
    result = Result(rows=[Row(name="a|b", measured="2", goal="<= 3x", verdict="met")], notes=["A note."])
    page.keep("synth", "The app", result, machine=MACHINE, seconds=1.4)
    page.write(["synth", "scale"])
    lines = (folders / "page.md").read_text().splitlines()
    assert "## synth: The app" in lines
    assert "| a\\|b | <= 3x |  | 2 | met |" in lines
    assert "A note." in lines
    said = "2026-11-23: Xeon, 8 cores, 64 GiB, no GPU; Python 3.11, pydantic 2. The benchmark took 1 s."
    assert said in lines
    assert "Not run yet: `make bench ONLY=scale`." in lines
    assert (folders / "page.md").read_text().endswith(page.TESTS.read_text())


def test_the_figure_of_the_previous_day_is_shown_beside_the_new_one(folders: Path) -> None:
    for date, measured in (("2026-11-22", "3x (2 to 4)"), ("2026-11-23", "2x"), ("2026-11-23", "1x")):
        result = Result(rows=[Row(name="a", measured=measured), Row(name=measured, measured="new")])
        page.keep("synth", "The app", result, machine={**MACHINE, "date": date}, seconds=1)
    page.write(["synth"])
    lines = (folders / "page.md").read_text().splitlines()
    assert "| a |  | 3x | 1x |  |" in lines
    assert "| 1x |  |  | new |  |" in lines


@pytest.mark.parametrize(
    "picture",
    [
        Bars(title="Bars", x_label="s", bars=[bar("ours", [1.0, 2.0])], goal=3.0),
        Lines(title="Lines", x_label="nodes", y_label="s", x=[1, 2], lines={"ours": [1, 2]}),
    ],
)
def test_a_kept_picture_is_drawn_as_it_was_measured(
    picture: Bars | Lines, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[Bars | Lines, Path]] = []
    monkeypatch.setattr(page, "draw", lambda *given: drawn.append(given))
    page.keep("synth", "The app", Result(rows=[], picture=picture), machine=MACHINE, seconds=1)
    page.write(["synth"])
    assert drawn == [(picture, folders / "pictures" / "bench-synth.png")]
    assert f"![{picture.title}](pictures/bench-synth.png)" in (folders / "page.md").read_text()
