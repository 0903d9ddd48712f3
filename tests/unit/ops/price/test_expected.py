"""`trainctl price titan`: whether a model fits, its speed by a published utilisation, days and USD."""

import json
import sys

import pytest

from ops.__main__ import main
from ops.price.expected import expect
from ops.usage import UsageError
from training_cluster.rules.context import read_settings

EIGHT_B = {"SIZE": "8B", "SEQ_LEN": "8192"}


def test_the_estimate_takes_the_published_speed() -> None:
    found = expect("titan", EIGHT_B, read_settings({"family": "p5", "nodes": "4"}))
    assert found.speed.per_s == pytest.approx(217_120, rel=0.01)  # the slower one of figures.json
    assert "39.7% of the peak" in found.speed.what
    assert not found.speed.is_measured
    assert found.tokens == 1000 * 32 * 8192
    assert any(each.startswith("memory: about ") for each in found.reasons)


def test_other_families_take_the_published_utilisation() -> None:
    job = {**EIGHT_B, "MAX_STEPS": "9", "GLOBAL_BATCH": "64"}
    found = expect("titan", job, read_settings({"nodes": "4"}))
    assert found.speed.per_s == pytest.approx(217_120 * 312 / 989, rel=0.01)
    assert "of p5 (" in found.speed.what
    assert found.tokens == 9 * 64 * 8192


def test_weights_that_nobody_has_looked_at_are_named() -> None:
    job = {**EIGHT_B, "INIT_FROM": "/fsx/none"}
    found = expect("titan", job, read_settings({"family": "p5", "nodes": "4"}))
    assert "INIT_FROM=/fsx/none: not looked at here; trainctl submit does" in found.reasons


@pytest.mark.parametrize(
    ("workload", "job", "flags", "said"),
    [
        ("titan", {"SIZE": "405B"}, {"family": "p5"}, r"does not fit: .* take \d+ nodes or more"),
        ("titan", {"FLOAT8": "yes"}, {}, "those of p4d.24xlarge have 8.0"),
        ("titan", {"MODEL": "deepseek_v3", "SIZE": "16B", "EP": "3"}, {}, "EP is 3 and"),
        ("titan", {"SIZE": "8B", "BATCH_SIZE": "-1"}, {}, "BATCH_SIZE is -1: give 0 or more"),
        ("titan", {"INIT_FROM": "a/b"}, {}, "give MODEL and SIZE"),
        ("titan", {}, {"family": "m6i"}, "give a family that has them"),
        ("titn", {}, {}, 'Did you mean "titan"'),
        ("gpt2", {}, {}, "allowed: titan"),
    ],
)
def test_what_cannot_be_estimated_is_one_message(
    workload: str, job: dict[str, str], flags: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        expect(workload, job, read_settings(flags))


def _call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["trainctl", "price", "--offline", *arguments])
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


def test_the_command_says_days_and_usd(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("-c", "family=p5", "-c", "nodes=4", "--set", "SIZE=8B", "--set", "MAX_STEPS=1000000")
    assert _call(monkeypatch, "titan", *flags) == 0
    said = capsys.readouterr().out
    assert "tokens (MAX_STEPS) take " in said
    assert "; the run " in said
    assert _call(monkeypatch, "titan", "--json", *flags) == 0
    assert json.loads(capsys.readouterr().out)["job"]["tokens"] > 1e9
    assert _call(monkeypatch, "titan", "--set", "SIZE=8B", "--set", "EP=8") == 2
    refused = capsys.readouterr().err
    assert "titan would refuse to run on" in refused
    assert "the model has no experts: give EP=1" in refused
    assert "Traceback" not in refused
    assert _call(monkeypatch, "titan", "--tokens-per-s", "5") == 2
    assert "not both" in capsys.readouterr().err
