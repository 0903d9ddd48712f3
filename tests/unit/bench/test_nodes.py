"""The rows of a node's start, and of a job's first step on a node that is powered down."""

from __future__ import annotations

import pytest

from bench.nodes import first_step_rows

RUNS = [{"step": 2.0, "other": 1.0}]


@pytest.mark.parametrize(("sbatch_s", "verdict"), [(14.0, "met"), (24.0, "missed")])
def test_what_bare_torchrun_takes_too_is_not_ours(sbatch_s: float, verdict: str) -> None:
    whole, ours = first_step_rows(RUNS, {"sbatch": [sbatch_s], "bare torchrun": [12.0]})
    assert whole.measured == f"{294 + 3 + sbatch_s:.0f} s"
    assert ours.measured == f"{3 + sbatch_s - 12:.1f} s"
    assert ours.verdict == verdict


def test_without_a_run_of_the_rehearsal_there_is_no_figure() -> None:
    (row,) = first_step_rows(RUNS, None)
    assert row.verdict == "not run"
