"""The page of `trainctl report` in a real browser, where there is one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.report.page import render_page
from ops.report.source import read_folder
from tests.unit.ops.report.browser import Browser, browser, find_browser
from tests.unit.ops.report.example_run import write_all_reduce, write_training

CHROMIUM = find_browser()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH"),
]
# Whether a chart has something else than background on it.
DRAWN = """[...document.querySelectorAll('canvas')].map((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, i) => i % 4 === 3 && value > 0);
})"""
LAST = "document.querySelector('#chart-loss .values').textContent"
PLACE = """(() => {
  const box = document.querySelector('#chart-loss .u-over').getBoundingClientRect();
  return [box.left, box.top + 20, box.width];
})()"""
FRAME = "new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Page of two trainings and an all-reduce."""
    folder = tmp_path_factory.mktemp("page")
    runs = [
        write_training(folder, steps=900),
        write_training(folder, run="</script><b>" * 3, job="19", steps=300, deaths=()),
        write_all_reduce(folder),
    ]
    (folder / "page.html").write_text(render_page([read_folder(run) for run in runs]))
    return folder / "page.html"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    assert CHROMIUM
    with browser(CHROMIUM) as window:
        yield window


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_chart_is_drawn_within_the_window(width: int, dark: bool, page: Path, window: Browser) -> None:
    window.open(page, width=width, dark=dark)
    assert window.evaluate(DRAWN) == [True] * 8
    assert window.evaluate("document.documentElement.scrollWidth") == width
    assert window.evaluate("document.querySelectorAll('b').length > 0 && !document.querySelector('h1 b')")
    background = window.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(15, 19, 24)") == dark
    assert window.page_errors() == []


def point(window: Browser, part: float, kind: str = "mouseMoved") -> str:
    """Move the pointer over the first chart, or press or release its button; what the chart says then."""
    window.evaluate("document.getElementById('chart-loss').scrollIntoView()")
    left, top, width = window.evaluate(PLACE)
    button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
    window.send("Input.dispatchMouseEvent", type=kind, x=left + width * part, y=top, **button)
    window.evaluate(FRAME)
    return str(window.evaluate(LAST))


def test_the_pointer_shows_values_on_every_axis(page: Path, window: Browser) -> None:
    window.open(page, width=1280, dark=False)
    assert window.evaluate(LAST).startswith("last ")
    for axis, said in (("step", "step 4"), ("seconds", " min"), ("tokens", " tokens")):
        window.evaluate(f"document.querySelector('input[value={axis}]').click()")
        assert said in point(window, 0.5)
    assert window.page_errors() == []


def test_dragging_zooms_every_chart_and_a_button_resets(page: Path, window: Browser) -> None:
    window.open(page, width=1280, dark=False)
    whole = point(window, 0.0)
    for part, kind in (
        (0.4, "mouseMoved"),
        (0.4, "mousePressed"),
        (0.6, "mouseMoved"),
        (0.6, "mouseReleased"),
    ):
        point(window, part, kind)
    closer = point(window, 0.0)
    assert closer.startswith("step 3")
    other = "document.querySelector('#chart-mfu .values').textContent"
    assert window.evaluate(other).startswith("step 3")
    window.evaluate("document.getElementById('whole').click()")
    window.evaluate(FRAME)
    point(window, 0.5)
    assert point(window, 0.0) == whole
