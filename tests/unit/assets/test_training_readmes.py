"""Each workload's README has the same headings in the same order."""

import re
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

FIRST = ("Run it", "Settings")
LAST = ("Differences from the walk-through", "Figures", "Limits")
READMES = (
    *sorted((ROOT / "assets" / "training").glob("*/README.md")),
    ROOT / "ops" / "workload_template" / "README.md",
)


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_readmes_have_commands_first_and_figures_last(readme: Path) -> None:
    text = readme.read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[:2] == list(FIRST)
    assert "job.slurm" in text.split("## Settings")[0]
    at_the_end = [each for each in LAST if each in headings]
    assert headings[len(headings) - len(at_the_end) :] == at_the_end
