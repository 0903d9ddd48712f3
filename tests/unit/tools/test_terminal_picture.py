"""tools/terminal_picture.py: the pictures of commands in the docs."""

import sys
from pathlib import Path

import pytest

from tools.terminal_picture import main
from training_cluster.paths import ROOT


def test_picture_has_the_words_and_loads_nothing(tmp_path: Path) -> None:
    program = f"print('\\x1b[1mLoss\\x1b[0m ▁▂█ <b>& {ROOT}/runs')"
    assert main([str(tmp_path / "loss.svg"), sys.executable, "-c", program]) == 0
    svg = (tmp_path / "loss.svg").read_text().replace("&#160;", " ")
    assert "Loss" in svg
    assert "~/training-cluster/runs" in svg
    for absent in ("<b>", "@font-face", "url(http"):
        assert absent not in svg


def test_failed_command_leaves_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "a.svg"), sys.executable, "-c", "raise SystemExit(3)"]) == 3
    assert list(tmp_path.iterdir()) == []
    assert main(["trainctl", "status"]) == 2
    assert "type: python -m tools.terminal_picture" in capsys.readouterr().err
