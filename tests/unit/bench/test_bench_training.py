"""Benchmarks of training, data and checkpoints: figures, and messages where something is missing."""

from pathlib import Path

import pytest

from bench import checkpoint, data, training_cpu, training_gpu
from bench.baselines.fairseq_command import single_process
from bench.measuring.environments import Baseline
from bench.measuring.timing import BaselineError
from bench.measuring.watched import Watched
from bench.subjects.gpt2_programs import Sizes
from bench.subjects.preparations import Text
from tests.unit.assets.training.workload_modules import workload_on_the_path

SIZES = Sizes(layers=12, heads=12, width=768, context=1024, vocab_size=50304, batch=12, steps=2, after=1)


class TestStalls:
    def test_what_a_checkpoint_adds_is_found_in_the_step_behind_it(self) -> None:
        # Steps of 1 s; checkpoints after steps 4, 8 and 12: the first costs 0.5 s, the second 0.25 s.
        took = [0.0, 1, 1, 1, 1.5, 1, 1, 1, 1.25, 1, 1, 1]
        times = [sum(took[: number + 1]) for number in range(len(took))]
        quiet, found = checkpoint.stalls(times, every=4)
        assert quiet == pytest.approx(1.0)
        assert found == pytest.approx([0.5, 0.25])

    def test_steps_that_are_slow_while_it_is_written_count_too(self) -> None:
        took = [0.0, 1, 1, 1, 1.5, 1.25, 1, 1]
        times = [sum(took[: number + 1]) for number in range(len(took))]
        assert checkpoint.stalls(times, every=4)[1] == pytest.approx([0.75])


def test_rows_of_absent_baselines_are_not_left_out() -> None:
    assert training_cpu._against_nanogpt([1.0], None).measured == "not run: baseline absent"
    rows = data._against("gpt2", "nanoGPT's prepare", [Watched(seconds=1.0, lines=[], peak_bytes=0)], None)
    assert [row.verdict for row in rows] == ["not run", "not run"]


def test_the_compiled_row_says_what_is_missing_or_compares_the_compiled_runs() -> None:
    nanogpt = Baseline(folder=Path(), note="")
    eager = {"gpt2": [8.0], "nanoGPT": [1.0]}
    assert training_cpu._compiled(eager, None).measured == "not run: baseline absent"
    assert training_cpu._compiled(eager, nanogpt).measured == "not run: no C++ compiler"
    row = training_cpu._compiled({**eager, "gpt2, compiled": [2.4], "nanoGPT, compiled": [2.0]}, nanogpt)
    assert (row.measured, row.verdict) == ("1.20x (1.20 to 1.20, 1 runs)", "met")


def test_without_a_gpu_each_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_gpu, "describe_machine", lambda: {"gpu": None})
    rows = training_gpu.measure().rows
    assert {row.measured for row in rows} == {"not run: no GPU"}
    goals = {row.name: row.goal for row in rows}
    assert goals["gpt2 124M, MFU on one GPU"] == ">= 45 %"
    assert goals["titan 1B, MFU on one GPU"] == ">= 50 %"
    assert goals["titan 1B against torchtitan alone, tokens/s"] == ">= 0.98x"


def test_titan_is_measured_with_settings_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    with workload_on_the_path(monkeypatch, "titan") as load:
        for name, value in training_gpu.TITAN.items():
            monkeypatch.setenv(name.upper(), str(value))
        settings = load("settings").read_settings([])
    assert (settings.model, settings.size, settings.data) == ("llama3", "1B", "machine")


@pytest.mark.parametrize(
    ("gpu", "peak"),
    [
        ("NVIDIA H200", 989),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA L40S", 362),
    ],
)
def test_the_peak_of_a_gpu_is_that_of_its_family(gpu: str, peak: float) -> None:
    assert training_gpu.peak_tflops(gpu) == pytest.approx(peak, abs=1)


def test_a_gpu_that_no_family_has_is_told() -> None:
    with pytest.raises(BaselineError, match="GeForce"):
        training_gpu.peak_tflops("NVIDIA GeForce RTX 4090")


def test_fairseq_is_called_without_what_only_several_ranks_need() -> None:
    told = ["data", "--task", "recorded_masked_lm", "--distributed-rank", "0", "--lr", "0.1"]
    told += ["--distributed-no-spawn", "--device-id", "0", "--cpu", "--ddp-backend", "legacy_ddp"]
    assert single_process(told) == ["data", "--task", "masked_lm", "--lr", "0.1", "--cpu"]


def test_what_two_workers_gain_is_counted_without_the_start() -> None:
    def ended(seconds: float) -> list[Watched]:
        return [Watched(seconds=seconds, lines=[], peak_bytes=1_000_000)]

    # 3 s of start; then 10 s of work by one worker, 5 s by two, in all on the largest text.
    texts = {times: Text(folder=Path(), size_bytes=1_000_000 * times) for times in data.GROWTH}
    two = {1: ended(3.0), 4: ended(4.25), 16: ended(8.0)}
    rows = data._own_rows("gpt2", two, {1: ended(3.0), 16: ended(13.0)}, texts)
    assert rows[-1].measured.startswith("2.00x")
    assert [row.verdict for row in rows] == ["", "met", "met", "met"]
