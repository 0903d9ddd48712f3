"""READMEs of the workloads: the same headings in the same order, three commands first."""

from pathlib import Path

import pytest

from training_cluster.paths import ROOT, TRAINING

READMES = [*sorted(TRAINING.glob("*/README.md")), ROOT / "ops" / "workload_template" / "README.md"]
FIRST, LAST = ["Run it", "Settings", "Data"], ["Figures", "Limits"]


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_a_workload_s_readme_has_the_headings_of_all_in_their_order(readme: Path) -> None:
    text = readme.read_text()
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert (headings[:3], headings[-2:]) == (FIRST, LAST)
    commands = text.partition("## Run it\n")[2].partition("\n## ")[0].splitlines()
    assert len([line for line in commands if line.startswith("    ") and not line.startswith("      ")]) >= 3


def test_every_workload_has_a_readme() -> None:
    folders = {path.parent for path in TRAINING.glob("*/train.sh")}
    assert {path.parent for path in READMES} - {ROOT / "ops" / "workload_template"} == folders
