"""`trainctl lint`: each row of rules.yaml on its own examples, and our own job scripts."""

import pytest

from ops.lint.command import lint, lint_files
from ops.lint.rules import load_rules
from training_cluster.paths import ROOT, TRAINING

OURS = [
    *(file for suffix in ("sh", "slurm") for file in (TRAINING).rglob(f"*.{suffix}")),
    *(ROOT / "ops" / "workload_template").glob("*.sh"),
]

BAD = [(rule.id, script) for rule in load_rules().values() for script in rule.bad]
GOOD = [(rule.id, script) for rule in load_rules().values() for script in rule.good]


@pytest.mark.parametrize(("rule", "script"), BAD)
def test_a_rule_finds_bad_examples_unless_allowed(rule: str, script: str) -> None:
    (at,) = [found.line for found in lint(script, name="job.slurm") if found.rule == rule]
    lines = script.splitlines()
    lines.insert(at - 1, f"# trainctl: allow {rule} measured on our image")
    assert rule not in {found.rule for found in lint("\n".join(lines), name="job.slurm")}


@pytest.mark.parametrize(("rule", "script"), GOOD)
def test_good_examples_please_every_rule(rule: str, script: str) -> None:
    assert lint(script, name="job.slurm") == []


def test_our_own_job_scripts_have_no_findings() -> None:
    assert {file.name for file in OURS} >= {"job.slurm", "launch.sh", "train.sh", "prepare.sh"}
    assert [found.text() for found in lint_files(OURS)] == []
