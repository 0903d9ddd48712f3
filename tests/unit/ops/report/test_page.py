"""The page of `trainctl report`: it loads nothing, runs only its own script, and reads without JavaScript."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from ops.report.page import render_page
from ops.report.record import Run
from ops.report.source import read_folder
from tests.unit.ops.report.example_run import P4D, write_all_reduce, write_training

EVIL = "</script><b>&\"'"
LOADING = set("src href srcset data poster background action formaction xlink:href style".split())


class Page(HTMLParser):
    """The parts of a page that the tests read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.headings: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two trainings and an all-reduce."""
    shared = tmp_path_factory.mktemp("fsx")
    other = P4D | {"LEARNING_RATE": "3e-4"}
    folders = [
        write_training(shared, steps=700),
        write_training(shared, run="mine", job="19", steps=300, deaths=(), settings=other),
        write_all_reduce(shared),
    ]
    return [read_folder(folder) for folder in folders]


@pytest.fixture(scope="module")
def evil(runs: list[Run]) -> Run:
    """A run whose every word wants to be more than text."""
    start = runs[0].starts[0].model_copy(update={"nodes": EVIL, "job": EVIL})
    figure = runs[0].figures[0].model_copy(update={"what": EVIL, "source": EVIL})
    return runs[0].model_copy(
        update={
            "run": EVIL,
            "settings": {EVIL: EVIL},
            "starts": [start],
            "start_count": 1,
            "figures": [figure],
            "failed": EVIL,
        }
    )


def test_it_loads_nothing_and_runs_its_script_alone(runs: list[Run]) -> None:
    text = render_page(runs)
    page = Page(text)
    assert [each for each in page.attributes if each[1] in LOADING] == []
    assert not {tag for tag, _, _ in page.attributes} & {"link", "img", "iframe", "object", "base"}
    assert re.findall(r"url\(|@import", "".join(page.texts["style"])) == []
    policy = next(value for value in page.values("content") if value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        wanted = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{wanted}'" in policy
    text = render_page(runs[:1])
    assert "/* uPlot 1.6.32\nThe MIT License (MIT)\n\nCopyright (c) 2022 Leon Sorokin" in text
    assert len(text) < 200_000


def test_words_of_a_run_stay_words(evil: Run, runs: list[Run]) -> None:
    usual, page = Page(render_page(runs[:1])), Page(render_page([evil]))
    assert "b" not in page.texts
    assert page.texts["h1"] == [f"gpt2/{EVIL}"]
    assert len(page.texts["script"]) == len(usual.texts["script"])
    assert EVIL in page.texts["th"]
    assert EVIL in page.texts["td"]
    text = render_page([evil, runs[1]])
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    told = json.loads(data)
    assert [run["name"] for run in told["runs"]] == [f"gpt2/{EVIL}", "gpt2/mine"]
    assert told["runs"][1]["series"]["loss"]["mean"] == runs[1].series["loss"].mean
    assert [mark["step"] for mark in told["runs"][1]["checkpoints"]] == [250]


def test_without_javascript_its_tables_have_the_values(runs: list[Run]) -> None:
    page = Page(render_page(runs))
    told = " ".join(text for texts in page.texts.values() for text in texts)
    values = (
        "11.7",
        "GiB",
        "restart 1",
        "train-dy-p4d-[1-2]",
        "LEARNING_RATE",
        "2.85 nats a token",
        "16 GiB",
    )
    for value in values:
        assert value in told
    assert "The curves need JavaScript" in told


def test_each_chart_has_heading_label_and_table(runs: list[Run]) -> None:
    page = Page(render_page(runs))
    charts = [value for tag, name, value in page.attributes if (tag, name) == ("figure", "id")]
    names = "loss val_loss grad_norm tokens_per_s mfu data_share memory_bytes learning_rate busbw_gb_per_s"
    assert charts == [f"chart-{name}" for name in names.split()]
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("div", "aria-label")]
    assert sum(label.startswith("Loss: gpt2/job-17 from 11.") for label in labels) == 1
    assert page.values("role").count("img") == len(charts) == len(page.texts["summary"])
    assert {"Loss", "Tokens per second"} <= set(page.texts["h3"])
    assert page.values("lang") == ["en"]


def test_settings_that_differ_come_first_and_marked(runs: list[Run]) -> None:
    text = render_page(runs[:2])
    marked = re.findall(r'<tr class="different"><th[^>]*>(.*?)</th>', text)
    assert marked == ["LEARNING_RATE"]
    table = text[text.index(marked[0]) :]
    assert "BATCH_SIZE</th>" in table, "what differs comes first"


def test_a_run_without_metrics_says_so(runs: list[Run]) -> None:
    nothing = runs[0].model_copy(update={"rows": 0, "series": {}, "axes": {}, "starts": [], "start_count": 0})
    text = render_page([nothing])
    for said in ("wrote no metrics.", "nothing to draw yet.", "The training was not started."):
        assert said in text
