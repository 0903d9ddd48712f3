"""The benchmarks' runs of gpt2: its output is found by the patterns that time it."""

from pathlib import Path

import pytest

from bench import checkpoint
from bench.subjects.gpt2_programs import Programs, Sizes
from bench.subjects.workloads import Workload

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
SIZES = Sizes(layers=1, heads=2, width=64, context=32, vocab_size=512, batch=2, steps=6, after=2)


def test_ours_is_timed_on_one_rank_and_on_two_and_the_plain_loop_too(tmp_path: Path) -> None:
    programs = Programs(
        Workload(name="gpt2", shared=tmp_path), SIZES, threads=1, device="cpu", precision="no"
    )
    for tokens_per_s in (programs.ours(), programs.ours(ranks=2), programs.plain_loop()):
        assert tokens_per_s > 0


def test_a_checkpoint_is_measured_and_a_run_that_resumes_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "EVERY", 4)
    monkeypatch.setattr(checkpoint, "SHARED", {**checkpoint.SHARED, "checkpoint_every": 4, "max_steps": 12})
    small = {"gpt2_layers": 1, "gpt2_heads": 2, "gpt2_width": 64, "vocab_size": 512}
    found = checkpoint._run(tmp_path, "gpt2", {**checkpoint.GPT2, **small}, made=checkpoint._MADE, threads=1)
    assert len(found["stalls_s"]) == 2
    assert found["restore_s"] > 0
    assert found["checkpoint_bytes"] > 0
