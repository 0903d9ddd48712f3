"""titan's tables of torchtitan's options, compared with torchtitan itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slow.assets.training.training import in_environment
from tests.unit.assets.training.workload_modules import workload_on_the_path

PASS = Path(__file__).with_name("options.txt")
"""The options that no setting decides, and that do not contradict a run: read each new one in torchtitan."""

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]


def test_torchtitan_has_each_option_that_is_refused_and_the_others_are_those_that_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {
        each.removeprefix("--").replace("-", "_")
        for each in in_environment("titan", "titan_options.py").splitlines()
    }
    with workload_on_the_path(monkeypatch, "titan") as load:
        tables, decider_of = (load("options").DECIDED, load("options").REFUSED), load("options").decider_of
        refused = {each for table in tables for names in table.values() for each in names}
        assert {each for each in refused if not any(f"{x}.".startswith(f"{each}.") for x in options)} == set()
        assert sorted(each for each in options if not any(decider_of(each, x) for x in tables)) == (
            PASS.read_text(encoding="utf-8").split()
        )
