"""Settings that all trainers share: from arguments, else the environment, and refused in one sentence."""

import pytest
from trainkit.run.settings import TrainSettings, fill_settings


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
