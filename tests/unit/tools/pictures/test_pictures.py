"""The README's pictures: made from the commands' output, and small."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from PIL import Image

from tools.pictures import screenshots


def test_a_picture_of_the_terminal_has_the_words_and_loads_nothing() -> None:
    svg = screenshots.draw_terminal("\x1b[1mLoss\x1b[0m ▁▂█ <b>&", "trainctl report 17").decode()
    assert "Loss" in svg
    assert "trainctl" in svg
    assert "<b>" not in svg
    assert "@font-face" not in svg
    assert "url(http" not in svg


def test_a_picture_of_a_page_gets_smaller_and_keeps_its_size() -> None:
    noise = random.Random(1)
    picture = Image.frombytes("RGB", (300, 200), noise.randbytes(300 * 200 * 3))
    content = io.BytesIO()
    picture.save(content, format="PNG")
    small = screenshots.reduce_colours(content.getvalue())
    assert len(small) < len(content.getvalue()) / 2
    assert Image.open(io.BytesIO(small)).size == (300, 200)


def test_without_a_browser_the_others_are_made_and_a_sentence_says_which_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screenshots, "find_browser", lambda: None)
    said_url = "trainctl top --url http://localhost:9090"
    monkeypatch.setattr(screenshots, "run", lambda command, _folder: f"$ {command}\n   {said_url}\n")
    asked: list[str] = []
    png = io.BytesIO()
    Image.new("RGB", (8, 8)).save(png, format="PNG")

    def draw(url: str, _boards: object) -> bytes:
        asked.append(url)
        return png.getvalue()

    monkeypatch.setattr(screenshots, "draw", draw)
    monkeypatch.setattr(screenshots, "watch_deploy", lambda _folder: "UPDATE_IN_PROGRESS")
    made = dict(screenshots.make_pictures(tmp_path))
    of_terminals = {"rehearse.svg", "preflight.svg", "status.svg", "status-watch.svg"}
    of_terminals |= {"trainctl.svg", "report-terminal.svg"}
    assert set(made) == of_terminals | {"board-cluster.png", "board-jobs.png"}
    assert set(asked) == {"http://localhost:9090"}
    assert "trainctl rehearse" in made["rehearse.svg"].decode().replace("&#160;", " ")
    said = capsys.readouterr().err
    assert "report-phone: left out: no Chromium on PATH" in said


def test_nothing_is_deployed_where_there_is_no_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with pytest.raises(KeyError, match="AWS_ENDPOINT_URL"):
        screenshots.watch_deploy(tmp_path)
