"""Parts that trainers share: metrics, checkpoints, precision and the like, as a trainer calls them."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.run.runs import a_run, row, save
from training_cluster.paths import TRAINING

sys.path.insert(0, str(TRAINING))
try:
    from trainkit.run import metrics, outcome, precision, report
    from trainkit.run.finite import check_finite
    from trainkit.run.mfu import flops_per_token, mfu
    from trainkit.run.run import Run
    from trainkit.run.steps import peak_bytes
    from trainkit.run.stopping import Stop
finally:
    sys.path.remove(str(TRAINING))


def test_a_rank_knows_its_folders_and_its_share_of_the_accelerators_peak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"RUN_DIR": "/r", "DATA_DIR": "/d", "CHECKPOINT_DIR": "/c", "RANK": "3", "LOCAL_RANK": "1"}
    trainium = {"ACCELERATOR_PEAK_TFLOPS": "190", "ACCELERATORS_PER_NODE": "16", "RANKS_PER_NODE": "32"}
    for name, value in {**given, "EXPECTED_WORLD_SIZE": "64", **trainium}.items():
        monkeypatch.setenv(name, value)
    run = Run.from_environment()
    assert (run.rank, run.local_rank, run.world_size, run.is_first) == (3, 1, 64, False)
    assert run.peak_tflops == 95
    monkeypatch.setenv("MIXED_PRECISION", "no")
    assert Run.from_environment().peak_tflops is None, "the families' figures are of 16 bits"
    monkeypatch.setenv("MIXED_PRECISION", "bf16")
    assert Run.from_environment().peak_tflops == 95
    monkeypatch.setenv("DEVICE", "cpu")
    assert Run.from_environment().peak_tflops is None
    monkeypatch.delenv("RUN_DIR")
    with pytest.raises(SystemExit, match="rank 3: RUN_DIR is not set"):
        Run.from_environment()


@pytest.mark.parametrize(
    ("loss", "norm", "scale"),
    [(math.nan, 1.0, None), (2.0, math.inf, None), (math.inf, math.nan, 1024.0), (2.0, math.nan, 0.5)],
)
def test_a_step_without_finite_numbers_ends_the_run_and_names_the_checkpoint_before(
    tmp_path: Path, loss: float, norm: float, scale: float | None
) -> None:
    run = a_run(tmp_path, rank=1)
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


def test_a_run_that_diverged_is_not_queued_again(tmp_path: Path) -> None:
    run = a_run(tmp_path, rank=1)
    save(run, 8)
    with pytest.raises(SystemExit, match=r"the norm of the gradients 1\.0: no checkpoint is written\."):
        check_finite(run, step=9, loss=math.nan, gradient_norm=1.0)
    done = end_of_training(run)
    assert done.returncode == 1, done.stderr
    assert "asked Slurm" not in done.stdout
    assert "the training diverged at step 9: not started again" in done.stdout
    assert re.search(
        r": LEARNING_RATE=VALUE RUN_NAME=run sbatch --nodes 2 .*/job\.slurm gpt2$", done.stdout, re.M
    )
    assert "more WARMUP_STEPS" in done.stdout
    (run.run_dir / "outcome").unlink()
    assert "asked Slurm: requeue 7" in end_of_training(run).stdout


def test_a_run_that_refused_its_network_is_not_queued_again_though_it_has_a_new_checkpoint(
    tmp_path: Path,
) -> None:
    run = a_run(tmp_path)
    save(run, 8)
    outcome.refused(run, "NCCL sends over TCP")
    done = end_of_training(run)
    assert (done.returncode, "asked Slurm" in done.stdout) == (1, False), done.stderr
    assert "not started again: NCCL sends over TCP\n" in done.stdout
    assert "continue from step 8: RUN_NAME=run sbatch --nodes 2 " in done.stdout


def test_an_update_that_fp16_skips_does_not_end_the_run(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    check_finite(run, step=1, loss=2.0, gradient_norm=math.inf, loss_scale=65536.0)
    check_finite(run, step=2, loss=2.0, gradient_norm=0.7)


def test_the_first_rank_tells_how_the_run_ended(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    outcome.stopped(a_run(tmp_path, rank=1), 9)
    assert not (run.run_dir / "outcome").exists()
    outcome.stopped(run, 9)
    assert (run.run_dir / "outcome").read_text() == "stopped 9\n"
    outcome.finished(run)
    assert (run.run_dir / "outcome").read_text() == "finished\n"


@pytest.fixture
def sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_sigterm_is_noted_and_nothing_else_once_a_rank_asks_for_it(sigterm: None) -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = Stop()
    assert signal.getsignal(signal.SIGTERM) == before, "until then it ends the rank"
    assert not stop.asked
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.asked


@pytest.mark.parametrize(
    ("name", "device", "flags", "said"),
    [
        ("fp16", "cpu", "avx512_bf16", "no CPU trains in fp16: type MIXED_PRECISION=no"),
        ("bf16", "cpu", "avx2 avx512f", "amx_bf16, avx512_bf16.*MIXED_PRECISION=no"),
        ("fp8", "cuda:0", "", 'MIXED_PRECISION is "fp8"; allowed: bf16, fp16, no'),
    ],
)
def test_a_precision_that_the_device_lacks_is_refused(
    tmp_path: Path, name: str, device: str, flags: str, said: str
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    with pytest.raises(SystemExit, match=said):
        precision.check_precision(name, device, cpuinfo=cpuinfo)


def test_bf16_is_taken_by_a_cpu_that_has_it(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    for flag in ("avx512_bf16", "amx_bf16"):
        cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {flag} ht\n")
        precision.check_precision("bf16", "cpu", cpuinfo=cpuinfo)
    precision.check_precision("no", "cpu", cpuinfo=tmp_path / "nowhere")


def test_mfu_is_the_share_of_the_peak_of_all_ranks() -> None:
    """GPT-2 124M, nanoGPT's own count: 6 N + 12 L H Q T."""
    flops = flops_per_token(parameters=124_000_000, layers=12, width=768, context=1024)
    assert flops == pytest.approx(857.2e6, rel=1e-3)
    assert mfu(853_000, flops, 312, 8) == pytest.approx(0.293, rel=1e-2)
    assert mfu(853_000, flops, None, 8) is None


def test_a_ranks_memory_is_in_bytes() -> None:
    assert 2**20 < peak_bytes("cpu") < 2**40


def test_the_report_takes_medians_after_warm_up_and_sets_published_figures_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path)
    written = metrics.Metrics(run.run_dir / "metrics.jsonl", after_step=0)
    for step in range(1, 9):
        written.add(**row(step, mfu=0.4))
    (run.run_dir / "starts").write_text("0 0 2026-01-01T00:00:00Z n 7\n1 4 2026-01-01T01:00:00Z n 7\n")
    figure = {
        "what": "a paper",
        "nodes": 2,
        "metric": "mfu",
        "value": 0.45,
        "unit": "share",
        "source": "there",
    }
    figures = [{**figure, "family": family, "reproduced": False} for family in ("p4d", "p5")]
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    arguments = [str(run.run_dir), "--figures", str(tmp_path / "figures.json"), "--family", "p4d"]
    assert report.main(arguments) == 0
    said = capsys.readouterr().out
    assert "8 steps, loss 8.0000 -> 1.0000, 6,000 tokens/s (median), MFU 40.0%, 10.0% of the time" in said
    assert "restarts: 1" in said
    assert "published: a paper, p4d, 2 nodes: 0.45 share (there; not reproduced here); this run: 0.4" in said
    assert "p5" not in said
    report.main([*arguments, "--json"])
    assert json.loads(capsys.readouterr().out)["restarts"] == 1
    assert report.main([str(tmp_path / "nowhere")]) == 1
