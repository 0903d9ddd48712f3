"""The benchmarks' preparations: each workload takes the settings that a benchmark gives it."""

from pathlib import Path

import pytest

from bench.data import WORKLOADS
from bench.subjects.preparations import Preparations, make_text, make_vocabulary

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_workload_prepares_a_text_with_the_given_vocabulary(workload: str, tmp_path: Path) -> None:
    text = make_text(tmp_path / "text", 1_000_000)
    vocabulary = make_vocabulary(tmp_path / "vocabulary", text)
    watched = Preparations(tmp_path / "runs", vocabulary).ours(workload, text, workers=2)
    assert watched.peak_bytes > 0
