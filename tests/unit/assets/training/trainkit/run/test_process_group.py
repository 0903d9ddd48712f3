"""Timeout of a start in each workload; tests/slow/ has the timeouts of real process groups."""

import re
from pathlib import Path

import pytest

from training_cluster.paths import ROOT, TRAINING

WORKLOADS = [*sorted(file.parent for file in TRAINING.glob("*/settings.py")), ROOT / "ops/workload_template"]


@pytest.mark.parametrize("folder", WORKLOADS, ids=lambda folder: folder.name)
def test_ranks_wait_for_each_other_as_long_as_a_start_may_take(folder: Path) -> None:
    text = "\n".join(file.read_text() for file in folder.glob("*.py"))
    assert re.search(r"process_group\.(join|lengthen)\(|timeout=process_group\.START", text)
    assert "process_group.shorten()" in text, "and in minutes that another one is gone"
