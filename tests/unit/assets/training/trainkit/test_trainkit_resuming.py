"""Settings that change at a resume: reported, applied, and refused where they change the global batch."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trainkit import loggers, resuming
from trainkit.run.settings import AccumulatingSettings, TrainSettings

from tests.unit.assets.training.trainkit.run.runs import a_run, save
from training_cluster.paths import TRAINING

SETTINGS = TrainSettings(learning_rate=3e-4, max_steps=5000)


def test_each_changed_setting_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path)
    begun = resuming.resumed_settings(run, SETTINGS, sequences=24)
    assert begun == dataclasses.replace(SETTINGS, global_batch=24)
    save(run, 4000, made_with=begun)
    now = dataclasses.replace(SETTINGS, learning_rate=1e-5, device="cpu")
    assert resuming.resumed_settings(a_run(tmp_path, rank=1), now, sequences=24).learning_rate == 1e-5
    assert capsys.readouterr().out == ""
    resuming.resumed_settings(run, now, sequences=24)
    lines = ["LEARNING_RATE 0.0003 -> 1e-05 from step 4,001", "DEVICE none -> cpu from step 4,001"]
    assert capsys.readouterr().out.splitlines() == lines
    save(run, 4010)
    assert resuming.resumed_settings(run, SETTINGS, sequences=36).global_batch == 36, "of an older version"
    assert capsys.readouterr().out == ""


def test_epochs_decide_about_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, given = a_run(tmp_path), dataclasses.replace(SETTINGS, epochs=2.0)
    begun = resuming.resumed_settings(run, given, sequences=24, texts={"raw": 4500})
    assert (begun.max_steps, begun.warmup_steps) == (375, 37)
    said = "LEARNING_RATE=0.0003, WARMUP_STEPS=37, 375 steps of 24 sequences: 2 epochs of raw\n"
    assert capsys.readouterr().out == said
    for texts in ({}, {"a": 1.0, "b": 2.0}):
        with pytest.raises(SystemExit, match="no mixture or stream: give MAX_STEPS"):
            resuming.resumed_settings(run, given, sequences=24, texts=texts)
    resuming.resumed_settings(run, SETTINGS, sequences=100, texts={"a": 1e6 / 0.7, "b": 1e4 / 0.3})
    assert "5,000 steps of 100 sequences: 0.35 epochs of a, 15 epochs of b\n" in capsys.readouterr().out
    resuming.resumed_settings(run, SETTINGS, sequences=100, texts={})
    assert capsys.readouterr().out.endswith("5,000 steps of 100 sequences\n")
    run, given = a_run(tmp_path), dataclasses.replace(SETTINGS, epochs=2.0)
    save(run, 100, made_with=resuming.resumed_settings(run, given, sequences=24, texts={"raw": 4500}))
    larger = dataclasses.replace(given, global_batch=36)
    now = resuming.resumed_settings(run, larger, sequences=36, texts={"raw": 4500})
    assert now.max_steps == 284, "100 steps of 24, and the other 6,600 sequences"


def test_a_run_keeps_the_defaults_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(tmp_path)
    save(run, 40, made_with=dataclasses.replace(SETTINGS, eval_every=0, warmup_steps=100, global_batch=24))
    short = dataclasses.replace(SETTINGS, max_steps=50)

    def resumed() -> tuple[int, int]:
        now = resuming.resumed_settings(run, short, sequences=24, texts={})
        return now.eval_every, now.warmup_steps

    assert resumed() == (0, 100)
    monkeypatch.setenv("EVAL_EVERY", "200")
    monkeypatch.setattr("sys.argv", ["train.py", "--warmup-steps=100"])
    assert resumed() == (200, 100)


def test_another_global_batch_is_refused_unless_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path)
    save(run, 40, made_with=resuming.resumed_settings(run, SETTINGS, sequences=24))
    with pytest.raises(SystemExit, match=r"with 24 sequences a step, and this job has 36: .*GLOBAL_BATCH=36"):
        resuming.resumed_settings(a_run(tmp_path, rank=1), SETTINGS, sequences=36)
    # job.slurm then does not start the run again with the same settings.
    assert (run.run_dir / "outcome").read_text().startswith(f"refused {run.checkpoint_dir}/step-000040 was ")
    done = dataclasses.replace(SETTINGS, max_steps=40)
    assert resuming.resumed_settings(run, done, sequences=12).global_batch == 12, "no step is left to do"
    capsys.readouterr()
    given = dataclasses.replace(SETTINGS, global_batch=36)
    save(run, 50, made_with=resuming.resumed_settings(run, given, sequences=36))
    assert capsys.readouterr().out == "GLOBAL_BATCH 24 -> 36 from step 41\n"
    resuming.resumed_settings(run, SETTINGS, sequences=36)
    with pytest.raises(SystemExit, match="GLOBAL_BATCH is 36, and a step of this job has 24 sequences"):
        resuming.resumed_settings(run, given, sequences=24)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfAModel(TrainSettings):
    """Settings of a trainer whose runs keep their SEED and their SIZE."""

    size: str = ""

    @property
    def kept(self) -> tuple[str, ...]:
        return "seed", "size"


def test_a_setting_of_the_model_is_kept(tmp_path: Path) -> None:
    run, settings = a_run(tmp_path), OfAModel()
    save(run, 40)
    resuming.resumed_settings(run, settings, sequences=24)  # one of an older version has no settings
    save(run, 50, made_with=resuming.resumed_settings(run, settings, sequences=24))
    # An earlier version chose a SIZE and did not record it.
    resuming.resumed_settings(run, dataclasses.replace(settings, size="8B"), sequences=24)
    sentence = "step-000050 was trained with SEED=1337, and this start has 7: give the same, or another"
    with pytest.raises(SystemExit, match=sentence):
        resuming.resumed_settings(run, dataclasses.replace(settings, seed=7), sequences=24)
    assert (run.run_dir / "outcome").read_text().startswith("refused ")


def test_another_number_of_ranks_keeps_the_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path)
    settings = AccumulatingSettings(batch_size=4, gradient_accumulation=3)
    begun = resuming.accumulated(run, settings)
    batch = 12 * run.world_size
    assert (begun.global_batch, begun.gradient_accumulation) == (batch, 3)
    save(run, 40, made_with=begun)
    fewer = dataclasses.replace(run, world_size=3 * run.world_size)
    now = resuming.accumulated(fewer, settings)
    assert (now.global_batch, now.gradient_accumulation) == (batch, 1)
    said = capsys.readouterr().out
    assert f"GRADIENT_ACCUMULATION is 1, not 3: a step has {batch} sequences (GLOBAL_BATCH)\n" in said
    given = dataclasses.replace(settings, global_batch=8 * run.world_size)
    assert resuming.accumulated(run, given).gradient_accumulation == 2
    with pytest.raises(
        SystemExit, match=f"a step has {batch} sequences, .* {20 * run.world_size}, which does"
    ):
        resuming.accumulated(dataclasses.replace(run, world_size=5 * run.world_size), settings)
    assert (run.run_dir / "outcome").read_text().startswith("refused a step has")


def test_the_largest_number_of_nodes_is_found(tmp_path: Path) -> None:
    """Of gpt2: the run so far has 24 sequences a step, and a node two in a micro-step."""
    run = a_run(tmp_path)
    save(run, 40, made_with=resuming.resumed_settings(run, SETTINGS, sequences=24))
    given = {"CHECKPOINT_DIR": str(run.checkpoint_dir), "NPROC_PER_NODE": "2", "BATCH_SIZE": "1"}

    def largest(least: int, most: int) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-I", "-B", str(TRAINING / "run_module.py"), "trainkit.node_count"]
        asked = [*program, str(TRAINING / "gpt2"), str(least), str(most)]
        return subprocess.run(asked, env=given, capture_output=True, text=True, check=False)

    assert [largest(2, most).stdout for most in (3, 5, 11, 12, 13)] == ["3\n", "4\n", "6\n", "12\n", "12\n"]
    refused = largest(9, 11)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "a step has 24 sequences, and a micro-step of these ranks 22, which does not" in refused.stderr


def test_a_logger_has_a_key_and_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL", "MLFLOW_TRACKING_URI", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    loggers.check_logger("")
    with pytest.raises(SystemExit, match="LOGGER=wandb needs a key: `trainctl secret set"):
        loggers.check_logger("wandb")
    with pytest.raises(SystemExit, match="MLFLOW_TRACKING_URI=https"):
        loggers.check_logger("mlflow")
    for name, value in (("WANDB_API_KEY", "k"), ("WANDB_MODE", "offline")):
        with monkeypatch.context() as given:
            given.setenv(name, value)
            loggers.check_logger("wandb")
    netrc = tmp_path / ".netrc"
    netrc.touch(mode=0o600)
    netrc.write_text("machine api.wandb.ai login user password k\n")
    loggers.check_logger("wandb")
    run, ids = a_run(tmp_path, name="mine"), list[str]()
    for _ in range(2):
        for name in ("WANDB_RUN_ID", "WANDB_PROJECT", "WANDB_RUN_NAME", "WANDB_RESUME"):
            monkeypatch.delenv(name, raising=False)
        loggers.name_wandb_run(run)
        ids.append(os.environ["WANDB_RUN_ID"])
        assert (os.environ["WANDB_PROJECT"], os.environ["WANDB_RUN_NAME"]) == ("runs", "mine")
    assert ids[0] == ids[1], "a restart continues the run"
    assert len(ids[0]) == 16
