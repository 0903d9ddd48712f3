"""Settings that change at a resume: reported, applied, and refused where they change the global batch."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.assets.training.trainkit.run.runs import a_run, resuming, save, settings

SETTINGS = settings.TrainSettings(learning_rate=3e-4, max_steps=5000)


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


def test_another_global_batch_is_refused_unless_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path)
    save(run, 40, made_with=resuming.resumed_settings(run, SETTINGS, sequences=24))
    with pytest.raises(SystemExit, match=r"with 24 sequences a step, and this job has 36: .*GLOBAL_BATCH=36"):
        resuming.resumed_settings(a_run(tmp_path, rank=1), SETTINGS, sequences=36)
    # job.slurm then does not start the run again with the same settings.
    assert (run.run_dir / "outcome").read_text().startswith(f"refused {run.checkpoint_dir}/step-000040 was ")
    given = dataclasses.replace(SETTINGS, global_batch=36)
    save(run, 50, made_with=resuming.resumed_settings(run, given, sequences=36))
    assert capsys.readouterr().out == "GLOBAL_BATCH 24 -> 36 from step 41\n"
    resuming.resumed_settings(run, SETTINGS, sequences=36)
    with pytest.raises(SystemExit, match="GLOBAL_BATCH is 36, and a step of this job has 24 sequences"):
        resuming.resumed_settings(run, given, sequences=24)


def test_a_run_without_a_step_to_do_may_have_any_batch(tmp_path: Path) -> None:
    run, done = a_run(tmp_path), dataclasses.replace(SETTINGS, max_steps=40)
    save(run, 40, made_with=resuming.resumed_settings(run, done, sequences=24))
    assert resuming.resumed_settings(run, done, sequences=12).global_batch == 12


def test_checkpoints_of_older_versions_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path)
    save(run, 40)
    assert resuming.resumed_settings(run, SETTINGS, sequences=36).global_batch == 36
    assert capsys.readouterr().out == ""


def test_an_optimizer_keeps_its_own_options_over_a_load() -> None:
    optimizer = SimpleNamespace(param_groups=[{"params": [1], "weight_decay": 0.3}])
    with resuming.own_options(optimizer):
        # As torch does: new groups, with the options of the state.
        optimizer.param_groups = [{"params": [1], "weight_decay": 0.1, "betas": (0.9, 0.95)}]
    assert optimizer.param_groups == [{"params": [1], "weight_decay": 0.3, "betas": (0.9, 0.95)}]
