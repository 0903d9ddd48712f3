"""The benchmark of titan on a CPU: the workload, and torchtitan alone with the batches of its loader."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import training_gpu
from bench.subjects.workloads import Settings

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

SMALL: Settings = {
    **training_gpu.TITAN,
    "size": "debugmodel",
    "seq_len": 64,
    "vocab_size": 512,
    "compile": "no",
    "device": "cpu",
    "mixed_precision": "no",
    "max_steps": 10,
}


def test_titan_and_torchtitan_alone_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_gpu, "_TITAN_AFTER", 1)
    titan = training_gpu.Titan(tmp_path, 1.0, settings=SMALL)
    assert titan.ours() > 0
    assert titan.alone() > 0
