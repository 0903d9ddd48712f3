"""The config that `trainctl plan` gives the library: the ids of what exists, and nothing else."""

import json
from typing import Any

import pytest

from ops.pcluster.dry_run import DryRun
from ops.pcluster.update_policies import Refused
from tests.unit.ops.plan.policy_flags import POLICY_FLAGS, placeholders_in
from tests.unit.ops.plan.test_plan import BUNDLE_SHA256, deployed, plan
from tools.docs.flag_changes import SAMPLES

_FLAGS: dict[str, dict[str, Any]] = {
    json.dumps(flags): dict(flags)
    for flags in (*(flags for each in SAMPLES for flags in (each.before, each.after)), *POLICY_FLAGS)
}


def _nothing_refused(pairs: Any) -> list[Refused]:
    return [Refused()] * len(pairs)


@pytest.fixture(autouse=True)
def _scripts_are_the_deployed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.plan.ids._bundle_sha256", lambda _: BUNDLE_SHA256)
    monkeypatch.setattr("ops.account.head_node.time.sleep", lambda _: None)


def test_plan_of_deployed_flags_is_empty() -> None:
    for flags in _FLAGS.values():
        found = plan(deployed(**flags), judge=_nothing_refused, **flags)
        assert (found.changes, found.not_judged) == ((), ()), flags


@pytest.mark.parametrize("flags", POLICY_FLAGS, ids=str)
def test_validators_get_no_placeholder(flags: dict[str, Any]) -> None:
    asked: list[str] = []

    def dry_run(_: str, config: Any) -> DryRun:
        asked.append(json.dumps(config))
        return DryRun(exists=True)

    found = plan(deployed(**flags), judge=_nothing_refused, dry_run=dry_run, **flags, idle_minutes="30")
    assert found.refused == ()
    (config,) = asked
    assert placeholders_in(config) == []
