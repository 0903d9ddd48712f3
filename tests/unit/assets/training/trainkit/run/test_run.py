"""Parts that trainers share: folders of a rank, finite numbers, precision, MFU, and the end of a run."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from trainkit.run import outcome, precision
from trainkit.run.finite import check_finite
from trainkit.run.mfu import flops_per_token, mfu
from trainkit.run.run import Run, data_note

from tests.unit.assets.training.trainkit.run.runs import a_run, save
from training_cluster.paths import TRAINING


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
            run,
            step=9,
            loss=loss,
            gradient_norm=norm,
            loss_scale=scale,
            finish_saving=lambda: save(run, 8),
        )


def end_of_training(run: Run) -> subprocess.CompletedProcess[str]:
    """End a job whose ranks failed, after a start at step 0."""
    # scontrol is all that needs a Slurm here.
    script = """
        log() { echo "$*"; }
        die() { echo "$*"; exit 1; }
        scontrol() { echo "asked Slurm: $*"; }
        tell() { :; }
        source "$TRAINING/restarts.sh"
        end_of_training 1
    """
    env = {
        **os.environ,
        **{"TRAINING": str(TRAINING), "training": str(TRAINING), "workload": "gpt2", "run": "run"},
        **{"RUN_DIR": str(run.run_dir), "CHECKPOINT_DIR": str(run.checkpoint_dir), "SPOT_NOTICE": "/none"},
        **{"MAX_RESTARTS": "3", "NNODES": "2", "SLURM_JOB_ID": "7", "THIS_JOB": "7"},
    }
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=env, capture_output=True, text=True)


def test_a_diverged_or_refused_run_is_not_requeued(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    save(run, 8)
    assert "asked Slurm: requeue 7" in end_of_training(run).stdout
    with pytest.raises(SystemExit, match=r"the norm of the gradients 1\.0: no checkpoint is written\."):
        check_finite(a_run(tmp_path, rank=1), step=9, loss=math.nan, gradient_norm=1.0)
    done = end_of_training(run)
    assert (done.returncode, "asked Slurm" in done.stdout) == (1, False), done.stderr
    assert "the training diverged at step 9: not started again" in done.stdout
    command = r": LEARNING_RATE=VALUE RUN_NAME=run sbatch --nodes 2 .*/job\.slurm gpt2$"
    assert re.search(command, done.stdout, re.M)
    assert "more WARMUP_STEPS" in done.stdout
    outcome.refused(run, "NCCL sends over TCP")
    done = end_of_training(run)
    assert (done.returncode, "asked Slurm" in done.stdout) == (1, False), done.stderr
    assert "not started again: NCCL sends over TCP\n" in done.stdout
    assert "continue from step 8: RUN_NAME=run sbatch --nodes 2 " in done.stdout


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
