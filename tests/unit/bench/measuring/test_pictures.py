"""Pictures of the benchmarks."""

from pathlib import Path

import pytest

from bench.measuring.pictures import draw
from bench.measuring.result import Bars, Lines, bar


@pytest.mark.parametrize("bars", [1, 5])
def test_bars_are_a_png_that_is_higher_with_more_of_them(bars: int, tmp_path: Path) -> None:
    shown = [bar(f"program {number}", [1.0, 2.0, 3.0]) for number in range(bars)]
    draw(Bars(title="Bars", x_label="s", bars=shown, goal=2.5), tmp_path / "bars.png")
    assert _height(tmp_path / "bars.png") == round((1.2 + 0.5 * bars) * 110)


def test_lines_are_a_png(tmp_path: Path) -> None:
    lines = Lines(title="Lines", x_label="nodes", y_label="s", x=[1, 2], lines={"ours": [1, 2]})
    draw(lines, tmp_path / "lines.png")
    assert _height(tmp_path / "lines.png") == 4 * 110


def _height(file: Path) -> int:
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG")
    return int.from_bytes(content[20:24])
