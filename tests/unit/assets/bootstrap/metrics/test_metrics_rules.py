"""The alert rules, by promtool, the distribution's own; steps 87 and 88 have their configs checked."""

import re
import shutil
import subprocess
from pathlib import Path

import yaml

from ops.asset_code import asset_code
from training_cluster.paths import ASSETS, ROOT

MONITORING = ASSETS / "bootstrap" / "monitoring"
CASES = Path(__file__).parent / "rules"
PROGRAMS = ROOT / ".cache" / "prometheus" / "usr" / "bin"


def run(program: str, *arguments: str, folder: Path) -> str:
    assert (PROGRAMS / program).exists(), f"{program} is missing; type: make setup"
    done = subprocess.run([PROGRAMS / program, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> list[dict[str, str]]:
    groups = yaml.safe_load((MONITORING / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_rules_fire_and_stay_quiet(tmp_path: Path) -> None:
    cases = sorted(path.name for path in CASES.glob("*.yml"))
    for path in (MONITORING / "rules.yml", *map(CASES.joinpath, cases)):
        shutil.copy(path, tmp_path)
    assert run("promtool", "test", "rules", *cases, folder=tmp_path).count("SUCCESS") == len(cases)


def test_rules_name_metrics_that_a_node_writes() -> None:
    names = asset_code("bootstrap/metrics", "names").names.NAMES
    exporter = {"up", "node_textfile_mtime_seconds"}
    known = {*names, *exporter, *(rule["record"] for rule in rules() if "record" in rule)}
    for rule in rules():
        used = re.findall(r"\b(?:[a-z]+_[a-z_]+(?::\w+)*|up)\b(?= *[{\[<>=)*/]|$| offset| or)", rule["expr"])
        functions = {"group_left", "quantile_over_time", "clamp_min"}
        assert set(used) - functions <= known, rule
