"""Parts that trainers share: settings and folders of a rank, rows, finite numbers, precision and MFU."""

import dataclasses
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from trainkit.run import metrics, precision, steps
from trainkit.run.finite import check_finite
from trainkit.run.mfu import flops_per_token, mfu
from trainkit.run.run import Run, data_note
from trainkit.run.settings import TrainSettings, fill_settings

from tests.unit.assets.training.trainkit.run.runs import a_run, row, save


def test_a_rank_reads_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"RUN_DIR": "/r", "DATA_DIR": "/d", "CHECKPOINT_DIR": "/c", "RANK": "3", "LOCAL_RANK": "1"}
    trainium = {"ACCELERATOR_PEAK_TFLOPS": "190", "ACCELERATORS_PER_NODE": "16", "RANKS_PER_NODE": "32"}
    for name, value in {**given, "EXPECTED_WORLD_SIZE": "64", **trainium}.items():
        monkeypatch.setenv(name, value)
    run = Run.from_environment()
    assert (run.rank, run.local_rank, run.world_size, run.is_first) == (3, 1, 64, False)
    assert run.peak_tflops == 95, "a rank's share of the accelerator"
    for name, value, peak in (
        ("MIXED_PRECISION", "no", None),  # the families' figures are of 16 bits
        ("MIXED_PRECISION", "bf16", 95),
        ("DEVICE", "cpu", None),
    ):
        monkeypatch.setenv(name, value)
        assert Run.from_environment().peak_tflops == peak
    monkeypatch.delenv("RUN_DIR")
    with pytest.raises(SystemExit, match="rank 3: RUN_DIR is not set"):
        Run.from_environment()
    with pytest.raises(SystemExit, match=r"/r/data\.json is missing: prepare\.sh writes it before the ranks"):
        data_note(run)


@pytest.mark.parametrize(
    ("loss", "norm", "scale"),
    [(math.nan, 1.0, None), (2.0, math.inf, None), (math.inf, math.nan, 1024.0), (2.0, math.nan, 0.5)],
)
def test_a_step_without_finite_numbers_ends_a_run(
    tmp_path: Path, loss: float, norm: float, scale: float | None
) -> None:
    run = a_run(tmp_path, rank=1)
    check_finite(run, step=1, loss=2.0, gradient_norm=math.inf, loss_scale=65536.0)  # fp16 skips an update
    check_finite(run, step=2, loss=2.0, gradient_norm=0.7)
    with pytest.raises(SystemExit, match=rf"step 9: the loss is {loss} .*{norm}.* no checkpoint before it: "):
        check_finite(run, step=9, loss=loss, gradient_norm=norm, loss_scale=scale)
    resume = rf"The last checkpoint with finite values is {tmp_path}/.*/step-000008: .* RUN_NAME=run and "
    with pytest.raises(SystemExit, match=resume):
        check_finite(
            run, step=9, loss=loss, gradient_norm=norm, loss_scale=scale, finish_saving=lambda: save(run, 8)
        )
    assert (run.run_dir / "outcome").read_text() == "diverged 9\n"


def test_a_precision_that_the_device_lacks_is_refused(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"

    def check(name: str, device: str, flags: str) -> None:
        cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {flags} ht\n")
        precision.check_precision(name, device, cpuinfo=cpuinfo)

    for name, device, flags, sentence in (
        ("fp16", "cpu", "avx512_bf16", "no CPU trains in fp16: type MIXED_PRECISION=no"),
        ("bf16", "cpu", "avx2 avx512f", "amx_bf16, avx512_bf16.*MIXED_PRECISION=no"),
        ("fp8", "cuda:0", "", 'MIXED_PRECISION is "fp8"; allowed: bf16, fp16, no'),
    ):
        with pytest.raises(SystemExit, match=sentence):
            check(name, device, flags)
    for name, flags in (("bf16", "avx512_bf16"), ("bf16", "amx_bf16"), ("no", "")):
        check(name, "cpu", flags)


def test_a_gpu_is_visible_and_has_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch is not here."""
    cuda = SimpleNamespace(
        device_count=lambda: 2,
        get_device_capability=lambda device: (8, 0) if device == "cuda:1" else (7, 0),
        get_device_name=lambda _: "V100",
    )
    torch = SimpleNamespace(cuda=cuda, device=lambda name: SimpleNamespace(index=int(name[-1])))
    monkeypatch.setitem(sys.modules, "torch", torch)
    precision.check_precision("bf16", "cuda:1")
    precision.check_precision("fp16", "cuda:0")
    with pytest.raises(
        SystemExit, match=r"V100 \(compute capability 7\.0\) has no bf16: type MIXED_PRECISION"
    ):
        precision.check_precision("bf16", "cuda:0")
    with pytest.raises(SystemExit, match="no GPU is visible for local rank 2, of 2 here: look with"):
        precision.check_precision("fp16", "cuda:2")


def test_mfu_is_a_share_of_all_ranks() -> None:
    """GPT-2 124M, nanoGPT's own count: 6 N + 12 L H Q T."""
    flops = flops_per_token(parameters=124_000_000, layers=12, width=768, context=1024)
    assert flops == pytest.approx(857.2e6, rel=1e-3)
    assert mfu(853_000, flops, 312, 8) == pytest.approx(0.293, rel=1e-2)
    assert mfu(853_000, flops, None, 8) is None


def test_a_wrong_setting_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one table of ranges and words; workloads test their own rules."""
    for name, value, sentence in (
        ("MAX_STEPS", "many", "argument --max-steps: invalid int value: 'many'"),
        ("MAX_STEPS", "0", "MAX_STEPS is 0: give 1 or more."),
        ("SEED", "-1", "SEED is -1: give 0 or more."),
        ("LEARNING_RATE", "nan", "LEARNING_RATE is nan: give 0 or more."),
        ("LEARNING_RATE", "inf", "LEARNING_RATE is inf: give 0 or more."),
        ("MIXED_PRECISION", "fp8", 'MIXED_PRECISION is "fp8"; allowed: bf16, fp16, no.'),
        ("PREPARE_WORKERS", "0", "PREPARE_WORKERS is '0': give a whole number from 1 to 1024."),
        ("PREPARE_WORKERS", "two", "PREPARE_WORKERS is 'two': give a whole number"),
        ("EVAL_BATCHES", "4", "EVAL_BATCHES is replaced by EVAL_SEQUENCES, the sequences of a validation"),
        ("SENTINEL_EVERY", "9", "SENTINEL_EVERY has no effect here, since gpt2 and roberta alone have a"),
        ("CHECKPOINT_LOCAL_EVERY", "9", "CHECKPOINT_LOCAL_EVERY has no effect here, since gpt2 and titan"),
    ):
        with monkeypatch.context() as given, pytest.raises(SystemExit) as ended:
            given.setenv(name, value)
            fill_settings(TrainSettings, [], about="")
        assert sentence in str(ended.value)
        assert "\n" not in str(ended.value)
    with pytest.raises(SystemExit, match="unrecognized arguments: --sede 1"):
        fill_settings(TrainSettings, ["--sede", "1"], about="")


def test_an_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    default = TrainSettings().seed
    for value, arguments, seed in (("", [], default), ("2", [], 2), ("2", ["--seed", "3"], 3)):
        monkeypatch.setenv("SEED", value)
        assert fill_settings(TrainSettings, arguments, about="").seed == seed


NOT_GIVEN = {"memory_bytes", "world_size"}


def train(folder: Path, *, rank: int = 0, after: int = 0, last: int = 8) -> list[dict[str, object]]:
    run = dataclasses.replace(a_run(folder, rank=rank), peak_tflops=1e-6)
    given = TrainSettings(max_steps=last, log_every=4)
    rows = steps.Steps(run=run, settings=given, after=after, device="cpu", flops_per_token=10.0)
    for step in range(after + 1, last + 1):
        rows.add(**{name: value for name, value in row(step).items() if name not in NOT_GIVEN})
    rows.add_validation(step=last, loss=1.0, seconds=2.0)
    file = run.run_dir / metrics.FILE
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def test_memory_of_a_gpu_is_what_torch_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(max_memory_allocated=lambda _: 37, max_memory_reserved=lambda _: 44)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert steps.peak_bytes("cuda:0") == 44


def test_each_step_is_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, rank=1) == []
    assert capsys.readouterr().out == ""
    found = train(tmp_path)
    assert [each["step"] for each in found] == [*range(1, 9), 8]
    assert (found[0]["world_size"], found[0]["mfu"]) == (2, pytest.approx(1000 * 10 / (1e-6 * 1e12 * 2)))
    assert 2**20 < int(str(found[0]["memory_bytes"])) < 2**40
    assert found[-1]["val_loss"] == 1.0
    printed = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert printed == ["step 1", "step 4", "step 8", "step 8"]
    # A start behind a checkpoint removes the rows that it repeats.
    assert [each["step"] for each in train(tmp_path, after=5, last=7)] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert capsys.readouterr().out.startswith("step 6:")
